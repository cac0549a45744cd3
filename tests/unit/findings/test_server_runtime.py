"""Findings about a server's runtime: that it was measured cold, or differs from the entry's declaration."""

import pytest

from redline.findings import judge
from redline.model import Cell, FindingKind, Grade, HopFacts, Recording, Series
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

COLD, DIFFERS = "not-warmed-up", "runtime-differs"
CELL = simulated_cell(load=SATURATE)


def warmed_for(seconds: float, *, detect: bool = False) -> Cell:
    return CELL.model_copy(update={"warmup_ns": round(seconds * 1e9), "warmup_detect": detect})


def seen_on(cell: Cell, *runtimes: str) -> Recording:
    """A trial whose server was seen to run on these."""
    made = simulated_recording(cell)
    assert made.server is not None
    return made.model_copy(update={"server": made.server.model_copy(update={"runtimes": runtimes})})


def behind_a_url(cell: Cell, *runtimes: str) -> Recording:
    return simulated_recording(cell).model_copy(update={"server": None, "attached_runtimes": runtimes})


def grades(cell: Cell, recording: Recording) -> dict[FindingKind, Grade]:
    return {each.kind: each.grade for each in judge(cell, recording) if each.kind in (COLD, DIFFERS)}


def declared(cell: Cell, runtime: str) -> Cell:
    entry = cell.variant.catalogued.model_copy(update={"runtime": runtime})
    return cell.model_copy(update={"variant": cell.variant.model_copy(update={"entry": entry})})


@pytest.mark.parametrize("runtime", ["jvm", "node", "dotnet", "pypy"])
def test_what_compiles_while_it_runs_wants_more_than_a_moment_of_warm_up(runtime: str) -> None:
    cell = declared(warmed_for(1), runtime)
    for recording in (behind_a_url(cell, runtime), seen_on(cell, runtime, "python")):
        assert grades(cell, recording) == {COLD: Grade.NOTE}
    (found,) = (each for each in judge(cell, behind_a_url(cell, runtime)) if each.kind == COLD)
    assert f"runs on {runtime}, " in found.message
    assert "took 1.00 s" in found.message
    assert "--warmup auto" in found.advice


@pytest.mark.parametrize("runtimes", [(), ("native",), ("python",), ("beam", "ruby")])
def test_what_is_compiled_or_never_compiled_needs_none(runtimes: tuple[str, ...]) -> None:
    assert grades(warmed_for(0), behind_a_url(warmed_for(0), *runtimes)) == {}


@pytest.mark.parametrize("cell", [warmed_for(5), warmed_for(1, detect=True)])
def test_five_seconds_or_a_detected_warm_up_are_enough(cell: Cell) -> None:
    assert grades(cell, behind_a_url(cell, "jvm")) == {}


def test_compilers_that_were_watched_say_more() -> None:
    cell = declared(warmed_for(1), "jvm")
    plain = seen_on(cell, "jvm")
    assert plain.traffic is not None
    window = plain.traffic.window_unix_ns
    watched = tuple(
        Series(name=name, unit="ns", subject="server", kind="counter", times_unix_ns=window, values=(0.0, 0.0))
        for name in ("compiler_cpu_ns", "compiler_wait_ns")
    )
    assert grades(cell, plain) == {COLD: Grade.NOTE}
    assert grades(cell, plain.model_copy(update={"series": (*plain.series, *watched)})) == {}


WARM = warmed_for(10)


@pytest.mark.parametrize(
    ("runtime", "seen", "differs"),
    [
        ("native", ("jvm",), True),
        ("native", ("python",), True),
        ("jvm", ("native",), True),
        ("jvm", ("python",), True),
        ("go", ("node",), True),
        ("jvm", ("jvm",), False),
        ("jvm", ("jvm", "python"), False),
        ("native", ("native",), False),
        ("go", ("native",), False),
        ("jvm", (), False),
        ("", ("jvm",), False),
    ],
)
def test_what_runs_is_compared_with_what_was_declared(runtime: str, seen: tuple[str, ...], differs: bool) -> None:
    cell = declared(WARM, runtime)
    assert grades(cell, seen_on(cell, *seen)) == ({DIFFERS: Grade.NOTE} if differs else {})


def test_the_finding_names_both() -> None:
    cell = declared(WARM, "native")
    (found,) = (each for each in judge(cell, seen_on(cell, "jvm")) if each.kind == DIFFERS)
    assert found.message == f"{cell.variant.entry.name} is declared as `runtime: native`, and its processes run on jvm."


def test_a_server_that_somebody_else_runs_declares_nothing() -> None:
    assert grades(WARM, behind_a_url(WARM, "jvm")) == {}


def test_what_a_proxy_runs_on_counts_for_the_whole() -> None:
    cell = declared(warmed_for(1), "native")
    made = seen_on(cell, "native")
    assert made.server is not None
    proxy = made.server.model_copy(update={"runtimes": ("jvm",)})
    hop = HopFacts(name="java.proxy", process=proxy, upstream="h1", upstream_seen="h1")
    routed = made.model_copy(update={"server": made.server.model_copy(update={"hops": (hop,)})})
    assert routed.runtimes == {"native", "jvm"}
    assert grades(cell, routed) == {COLD: Grade.NOTE}
