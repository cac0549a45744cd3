"""The series of the probes, each with its unit; `redline.model.recording` says what they mean."""

COUNTERS = {
    "cpu_ns": "ns",
    "context_switches_voluntary": "1",
    "context_switches_involuntary": "1",
    "preemptions": "1",
    "run_delay_ns": "ns",
    "processes_started": "1",
    "processes_ended": "1",
    "cores_busy_ns": "ns",
    "quota_periods": "1",
    "throttled_periods": "1",
    "throttled_ns": "ns",
    "busy_ns": "ns",
    "steal_ns": "ns",
    "cpu_pressure_ns": "ns",
    "tcp_segments_sent": "1",
    "tcp_segments_retransmitted": "1",
    "listen_overflows": "1",
    "listen_drops": "1",
    "syn_cookies": "1",
    "link_sent_bytes": "B",
    "link_received_bytes": "B",
}
GAUGES = {
    "rss_bytes": "B",
    "threads": "1",
    "processes": "1",
    "time_wait": "1",
    "local_ports": "1",
    "link_bits_per_s": "bit/s",
}
