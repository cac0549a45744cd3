"""The texts of wrk and wrk2, https://github.com/wg/wrk and https://github.com/giltene/wrk2."""

import re

from redline.extras.peers.outputs.reading import PeerOutput, reported, time_ns

_QUANTILE = re.compile(r"^ *(\d{1,3}(?:\.\d+)?)% +(\S+) *$", re.MULTILINE)
_LARGEST = re.compile(r"^ *Latency +\S+ +\S+ +(\S+)", re.MULTILINE)
_REQUESTS = re.compile(r"(\d{1,18}) requests in")
_RATE = re.compile(r"Requests/sec:\s+(\d{1,18}(?:\.\d+)?)")
_FAULTS = re.compile(r"Socket errors: .*|Non-2xx.*")
_WRONG = re.compile(r"Non-2xx.*responses: (\d{1,18})")
_FAULT_COUNTS = re.compile(r"(?:connect|read|write|timeout|responses:) (\d{1,18})")
_SPECTRUM = re.compile(r"^ *(\d{1,12}\.\d+) +(0\.\d+) +\d+ +\d", re.MULTILINE)
_HEAD = re.compile(r"^Running (.+) test @ (\S+)\n *(.+)$", re.MULTILINE)
_UNCORRECTED = "Uncorrected Latency"
_MS = 1e6


def knows(text: str) -> bool:
    """Whether wrk or wrk2 printed it."""
    return "Requests/sec:" in text and _HEAD.search(text) is not None


def knows_wrk2(text: str) -> bool:
    """Whether wrk2 printed it: only wrk2 calibrates its threads."""
    return knows(text) and ("Thread calibration:" in text or "HdrHistogram" in text)


def runs(text: str) -> int:
    """How many runs a text holds."""
    return len(_HEAD.findall(text))


def read(output: str) -> PeerOutput:
    """Read wrk's distribution; the maximum is in the statistics of its threads.

    With `-U`, wrk2 prints a second distribution, of times from the send, which is left out. Its spectrum has p95.
    """
    corrected = output.partition(_UNCORRECTED)[0]
    spectrum = {float(share): float(ms) * _MS for ms, share in _SPECTRUM.findall(corrected)}
    latencies = {round(float(share) / 100, 9): time_ns(text) for share, text in _QUANTILE.findall(corrected)}
    if latencies and 0.95 in spectrum:
        latencies.setdefault(0.95, spectrum[0.95])
    largest = _LARGEST.search(output)
    if largest is not None and 1.0 not in latencies:
        latencies[1.0] = time_ns(largest[1])
    requests, wrong, rate, head = (pattern.search(output) for pattern in (_REQUESTS, _WRONG, _RATE, _HEAD))
    faults = [fault.strip() for fault in _FAULTS.findall(output)]
    return PeerOutput(
        reported(latencies),
        int(requests[1]) - (int(wrong[1]) if wrong else 0) if requests else None,
        float(rate[1]) if rate else None,
        "; ".join(faults),
        failed=sum(int(count) for fault in faults for count in _FAULT_COUNTS.findall(fault)) if requests else None,
        url=head[2] if head else "",
        load=f"{head[3].strip()}, {head[1]}" if head else "",
    )
