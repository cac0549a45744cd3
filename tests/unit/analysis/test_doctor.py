"""The doctor is a table: every finding of a machine has its grade, its effect on the numbers and its remedy."""

from pathlib import Path
from typing import Any

import pytest

from redline.analysis.doctor import clock_advice, container_advice, examine
from redline.model import ClockReading, Environment

GOOD: dict[str, Any] = {
    "redline": "0.1.0",
    "engine": "0.1.0",
    "python": "3.11",
    "os": "Linux",
    "kernel": "6.12",
    "hostname": "lab",
    "cpu_model": "Fast CPU",
    "cores": 8,
    "cores_online": 8,
    "memory_bytes": 32 << 30,
    "governor": "performance",
    "turbo": False,
    "smt": False,
    "frequency_mhz": (3000, 3000),
    "numa_nodes": 1,
    "huge_pages": "madvise",
    "aslr": True,
    "mitigations": "meltdown, spectre_v2",
    "clock_source": "tsc",
    "congestion_control": "cubic",
    "open_files_soft": 1024,
    "open_files_hard": 1 << 20,
    "port_range": (32768, 60999),
    "tcp_tw_reuse": 2,
    "somaxconn": 4096,
    "cgroup": "v2",
    "cgroup_cpu_limit": 8.0,
    "load_average_1m": 0.1,
    "steal_share": 0.0,
    "busy_share": 0.01,
    "server_cpus": (1, 2, 3, 4),
    "engine_cpus": (5, 6, 7),
}


def environment(**changed: Any) -> Environment:
    return Environment.model_validate({**GOOD, **changed})


def test_a_good_machine_needs_nothing() -> None:
    advice = examine(environment())
    assert {item.grade for item in advice} == {"ok"}
    assert {item.do for item in advice} == {""}
    assert "server on 1-4, engine on 5-7" in advice[0].says


@pytest.mark.parametrize(
    ("changed", "topic", "grade", "says", "do"),
    [
        ({"cores": 1, "server_cpus": (), "engine_cpus": ()}, "cores", "warn", "one core", "at least 2 cores"),
        (
            {"cores": 2, "server_cpus": (0,), "engine_cpus": (1,)},
            "cores",
            "note",
            "server on 0, engine on 1",
            "4 cores",
        ),
        (
            {"cores": 3, "server_cpus": (0,), "engine_cpus": (2,)},
            "cores",
            "note",
            "the kernel shares these cores",
            "4 cores",
        ),
        (
            {"cores": 4, "server_cpus": (0, 2), "engine_cpus": (1, 3)},
            "cores",
            "note",
            "the kernel and the lab share these cores",
            "hardware threads",
        ),
        ({"governor": "powersave"}, "governor", "warn", "slow down between requests", "cpupower"),
        ({"turbo": True}, "turbo", "note", "turbo is on", "no_turbo"),
        ({"smt": True}, "smt", "note", "share a core", "smt/control"),
        ({"numa_nodes": 2}, "numa", "note", "2 NUMA nodes", "numactl"),
        ({"huge_pages": "always"}, "huge pages", "note", "always", "transparent_hugepage/enabled"),
        ({"aslr": False}, "aslr", "note", "the same layout", "randomize_va_space=2"),
        ({"virtual": "KVM"}, "virtual", "note", "virtual machine (KVM)", "within one run"),
        ({"virtual": "yes"}, "virtual", "note", "a virtual machine:", "within one run"),
        ({"steal_share": 0.035}, "steal", "warn", "3.5%", "another machine"),
        ({"busy_share": 0.4, "load_average_1m": 3.2}, "other load", "warn", "40% of the machine", "top"),
        ({"clock_source": "hpet"}, "clock", "warn", "hpet", "clocksource=tsc"),
        ({"cgroup_cpu_limit": 1.5}, "cgroup cpu", "warn", "1.5 cores of 8", "--cpuset-cpus"),
        ({"memory_bytes": 1 << 30}, "memory", "warn", "the machine has 1.0 GiB", "2 GiB"),
        ({"cgroup_memory_limit_bytes": 1 << 29}, "memory", "warn", "control group allows 0.5 GiB", "2 GiB"),
        ({"open_files_hard": 4096}, "open files", "warn", "up to 4096", "nofile"),
        ({"port_range": (60000, 60999)}, "ports", "warn", "1000 ports", "ip_local_port_range"),
        ({"tcp_tw_reuse": 0}, "time-wait", "note", "60 s", "tcp_tw_reuse=2"),
        ({"somaxconn": 128}, "backlog", "warn", "128 new connections", "somaxconn=4096"),
        ({"congestion_control": "bbr"}, "congestion", "note", "bbr", "cubic"),
    ],
)
def test_each_doubt_says_what_it_does_and_what_to_do(
    changed: dict[str, Any], topic: str, grade: str, says: str, do: str
) -> None:
    advice = {item.topic: item for item in examine(environment(**changed))}
    assert advice[topic].grade == grade
    assert says in advice[topic].says
    assert do in advice[topic].do
    also = {"smt"} if "virtual" in changed else set()  # a guest cannot know
    assert {item.grade for name, item in advice.items() if name not in {topic, *also}} == {"ok"}


@pytest.mark.parametrize("smt", [False, None])
def test_a_guest_does_not_know_whether_its_cores_are_threads(smt: bool | None) -> None:
    advice = {item.topic: item for item in examine(environment(virtual="KVM", smt=smt))}
    assert advice["smt"].grade == "note"
    assert advice["smt"].says.startswith("unknown: a guest is not shown")


def test_what_a_machine_does_not_report_is_not_judged() -> None:
    unknown = {
        "governor": "",
        "turbo": None,
        "smt": None,
        "frequency_mhz": None,
        "numa_nodes": None,
        "huge_pages": "",
        "aslr": None,
        "mitigations": "",
        "clock_source": "",
        "congestion_control": "",
        "port_range": None,
        "tcp_tw_reuse": None,
        "somaxconn": None,
        "cgroup_cpu_limit": None,
        "steal_share": None,
        "busy_share": None,
    }
    assert [item.topic for item in examine(environment(**unknown))] == ["cores", "virtual", "memory", "open files"]


def test_the_guide_explains_every_topic() -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/doctor.md").read_text()
    for item in (*examine(environment()), clock_advice(None)):
        assert f"\n## {item.topic}\n" in guide, item.topic


@pytest.mark.parametrize(("offset_ns", "grade"), [(0, "ok"), (-40_000, "ok"), (60_000, "note"), (5_000_000, "note")])
def test_a_clock_is_as_good_as_its_bound(offset_ns: int, grade: str) -> None:
    reading = ClockReading(
        reference="10.0.0.1", stratum=2, offset_ns=offset_ns, root_delay_ns=2_000, root_dispersion_ns=1_000
    )
    advice = clock_advice(reading)
    assert (advice.topic, advice.grade, bool(advice.do)) == ("clock", grade, grade != "ok")
    assert "by 10.0.0.1" in advice.says


def test_a_clock_of_which_nobody_says_anything_is_noted() -> None:
    advice = clock_advice(None)
    assert (advice.grade, "chrony" in advice.do) == ("note", True)


def test_an_engine_that_cannot_run_containers_gives_its_reason() -> None:
    good = container_advice("podman 4.3.1")
    assert (good.topic, good.grade, good.do) == ("containers", "ok", "")
    assert good.says.startswith("podman 4.3.1")
    bad = container_advice("", "`podman run` failed: no cgroups", "try it by hand")
    assert (bad.grade, bad.do) == ("note", "try it by hand")
    assert "`podman run` failed: no cgroups" in bad.says


@pytest.mark.parametrize(
    ("topic", "good", "doubtful"),
    [
        ("cores", {"cores": 4, "server_cpus": (1,), "engine_cpus": (2,)}, {"cores": 3, "server_cpus": (1,)}),
        ("cores", {"server_cpus": (1, 2, 3, 4), "engine_cpus": (5, 6, 7)}, {"engine_cpus": (0, 5, 6, 7)}),
        ("numa", {"numa_nodes": 1}, {"numa_nodes": 2}),
        ("steal", {"steal_share": 0.01}, {"steal_share": 0.0101}),
        ("other load", {"busy_share": 0.05}, {"busy_share": 0.051}),
        ("cgroup cpu", {"cgroup_cpu_limit": 8.0}, {"cgroup_cpu_limit": 7.9}),
        ("memory", {"memory_bytes": 2 << 30}, {"memory_bytes": (2 << 30) - 1}),
        ("memory", {"cgroup_memory_limit_bytes": 2 << 30}, {"cgroup_memory_limit_bytes": (2 << 30) - 1}),
        ("open files", {"open_files_hard": 16_384}, {"open_files_hard": 16_383}),
        ("ports", {"port_range": (1, 20_000)}, {"port_range": (1, 19_999)}),
        ("backlog", {"somaxconn": 1024}, {"somaxconn": 1023}),
    ],
)
def test_a_doubt_begins_just_beyond_its_limit(topic: str, good: dict[str, Any], doubtful: dict[str, Any]) -> None:
    for changed, is_good in ((good, True), (doubtful, False)):
        (seen,) = (item for item in examine(environment(**changed)) if item.topic == topic)
        assert (seen.grade == "ok", bool(seen.do)) == (is_good, not is_good)


@pytest.mark.parametrize(("bound_ns", "grade"), [(49_999, "ok"), (50_000, "note")])
def test_a_clock_is_good_below_fifty_microseconds(bound_ns: int, grade: str) -> None:
    reading = ClockReading(reference="r", stratum=2, offset_ns=bound_ns, root_delay_ns=0, root_dispersion_ns=0)
    assert reading.bound_ns == bound_ns
    assert clock_advice(reading).grade == grade


@pytest.mark.parametrize(
    ("limit", "memory", "says"), [(3 << 30, 4 << 30, "the control group allows 3.0"), (5 << 30, 4 << 30, "the machine")]
)
def test_memory_is_the_least_of_the_machine_and_the_control_group(limit: int, memory: int, says: str) -> None:
    advice = examine(environment(cgroup_memory_limit_bytes=limit, memory_bytes=memory))
    (seen,) = (item for item in advice if item.topic == "memory")
    assert seen.says.startswith(says)


@pytest.mark.parametrize(
    ("cpus", "text"), [((), "any"), ((3,), "3"), ((1, 2, 3), "1-3"), ((0, 2), "0,2"), ((0, 1, 4, 6, 7), "0-1,4,6-7")]
)
def test_cores_in_a_row_are_written_as_a_range(cpus: tuple[int, ...], text: str) -> None:
    assert f"server on {text}, engine on 5-7" in examine(environment(server_cpus=cpus, engine_cpus=(5, 6, 7)))[0].says


@pytest.mark.parametrize(("reuse", "where"), [(1, "everywhere"), (2, "on loopback")])
def test_ports_are_used_again_where_the_kernel_says(reuse: int, where: str) -> None:
    (seen,) = (item for item in examine(environment(tcp_tw_reuse=reuse)) if item.topic == "time-wait")
    assert (seen.grade, seen.says) == ("ok", f"ports in TIME_WAIT are used again {where}")


@pytest.mark.parametrize(("mhz", "says"), [((3000, 3000), "at 3000 MHz"), ((800, 3000), "at 800 to 3000 MHz")])
def test_frequencies_are_one_or_a_range(mhz: tuple[int, int], says: str) -> None:
    (seen,) = (item for item in examine(environment(frequency_mhz=mhz)) if item.topic == "frequency")
    assert seen.says == f"cores run {says}"
