"""Findings about what other packages brought."""

from redline.findings import judge
from redline.model import Finding, Recording
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

CELL = simulated_cell(load=SATURATE)


def about(kind: str, recording: Recording) -> list[Finding]:
    return [finding for finding in judge(CELL, recording) if finding.kind == kind]


def test_another_driver_is_named() -> None:
    recording = simulated_recording(CELL)
    assert recording.traffic is not None
    assert about("other-driver", recording) == []
    for version, named in (("1.2", "the driver loop 1.2, which"), ("", "the driver loop, which")):
        other = recording.model_copy(update={"traffic": recording.traffic.driven_by("loop", version)})
        (finding,) = about("other-driver", other)
        assert (finding.grade.value, named in finding.message) == ("warn", True)


def test_a_monitor_that_failed_is_named_with_its_reason() -> None:
    recording = simulated_recording(CELL)
    assert about("monitor-failed", recording) == []
    failed = recording.model_copy(update={"failed_monitors": {"queue": "OSError: gone"}})
    (finding,) = about("monitor-failed", failed)
    assert (finding.grade.value, "queue: OSError: gone." in finding.message) == ("note", True)
