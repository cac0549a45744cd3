"""Trials in which the server's cores were much faster or slower than in most others are named."""

from collections.abc import Sequence

from redline.analysis import build_report
from redline.findings import in_modes
from redline.model import Finding, FixedWork, Grade, Report, Run
from redline.report.doubt import caveats_section
from tests.fakes.recordings import simulated_run

USUAL_NS, ENGINE_NS = 10_000_000, 7_000_000


def report_of(ends: Sequence[tuple[float, float]]) -> Report:
    """The report of a run whose trials' cores took this many times the usual, before and after the load."""
    run = simulated_run(trials=5)
    changed = []
    for recording, (before, after) in zip(run.recordings, ends, strict=False):
        assert recording.server is not None
        (server_cpu,) = recording.server.cpus
        work = (
            FixedWork(cpu=server_cpu, before_ns=int(before * USUAL_NS), after_ns=int(after * USUAL_NS)),
            FixedWork(cpu=server_cpu + 1, before_ns=ENGINE_NS // 2, after_ns=ENGINE_NS),
        )
        changed.append(recording.model_copy(update={"fixed_work": work}))
    return build_report(Run(manifest=run.manifest, recordings=(*changed, *run.recordings[len(changed) :])))


def modes(report: Report) -> list[Finding]:
    return [one for cell in report.cells for one in cell.findings if one.kind == "host-mode"]


def said_of(report: Report) -> str:
    return next(caveats_section(report)).blocks[0].lines[0][1].text  # type: ignore[union-attr]


def test_trials_on_faster_cores_are_named_in_their_cells_and_counted_in_the_run() -> None:
    report = report_of([(0.7, 0.72)] + [(1.0, 1.1)] * 20 + [(0.6, 0.6)] + [(1.0, 0.95)] * 8)
    found = modes(report)
    assert {one.grade for one in found} == {Grade.NOTE}
    assert len(found) == 2
    assert "in 1 of 5 trials the server's cores were" in found[0].message
    assert "in 2 of 30 trials the server's cores were 39 to 67% faster than in the run's median trial" in said_of(
        report
    )


def test_slower_cores_are_named_as_well() -> None:
    report = report_of([(1.6, 1.5)] + [(1.0, 1.0)] * 29)
    assert "in 1 of 30 trials the server's cores were 33% slower than in the run's median trial" in said_of(report)
    assert in_modes([1.4, 0.7, 1.0]) == (
        "in 1 of 3 trials the server's cores were 40% faster and in 1 30% slower than in the run's median trial"
    )


def test_a_mode_that_ended_during_the_load_is_not_the_trials() -> None:
    report = report_of([(0.6, 1.0), (0.6, 1.5), (1.0, 0.6)] + [(1.0, 1.0)] * 27)
    assert modes(report) == []
    assert "host mode" not in said_of(report)


def test_the_scatter_within_a_mode_is_none() -> None:
    assert modes(report_of([(0.85, 0.9), (1.15, 1.2)] * 15)) == []


def test_a_run_without_measurements_or_with_few_says_nothing() -> None:
    for ends in ([], [(1.0, 1.0), (1.0, 1.0), (0.5, 0.5)]):
        report = report_of(ends)
        assert modes(report) == []
        assert all(trial.core_speed is None for cell in report.cells for trial in cell.trials)
