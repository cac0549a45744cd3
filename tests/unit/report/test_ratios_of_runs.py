"""Two runs that were measured in duets alone: the ratio of their ratios to the same baseline."""

import math

import pytest

from redline.errors import UsageError
from redline.model import Comparison, Metric, Run, ServerFacts, Verdict
from redline.report.comparison import BY_RATIOS, pair_sections
from tests.fakes.compared import Cost, compared_run
from tests.fakes.compared_runs import two_compared


def a_run(name: str, factor: float, *, builds: tuple[str, str] = ("aa", "bb"), first: int = 0, starts: int = 6) -> Run:
    """B over A in one scenario, `home`, where B costs so many times as much; with these builds of A and B."""
    run = compared_run({"home": Cost(factor)}, starts=starts, first_start=first)
    known = [ServerFacts(pid=1, command=("./s",), port=1, build=build, ready_ns=1) for build in (*builds, builds[0])]
    duets = tuple(duet.model_copy(update={"servers": tuple(known)}) for duet in run.duets)
    manifest = run.manifest.model_copy(update={"name": name})
    return run.model_copy(update={"duets": duets, "manifest": manifest})


def cpu(comparisons: tuple[Comparison, ...]) -> Comparison:
    (found,) = (comparison for comparison in comparisons if comparison.metric is Metric.CPU_PER_REQUEST)
    return found


def test_the_ratio_of_two_ratios_is_what_changed_in_the_server() -> None:
    monday, tuesday = a_run("monday", 1.05), a_run("tuesday", 1.155, builds=("aa", "cc"), first=6)
    result = two_compared(monday, tuesday, anyway=False)
    ratio = cpu(result.comparisons).ratio
    assert result.by_ratios
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 1.1 < ratio.high
    assert (cpu(result.comparisons).verdict, ratio.n) == (Verdict.SLOWER, 6)
    assert ratio.method.endswith("of two runs")
    back = cpu(two_compared(tuesday, monday, anyway=False).comparisons)
    assert back.verdict is Verdict.FASTER
    assert back.ratio is not None
    assert math.isclose(back.ratio.value, 1 / ratio.value)


def test_its_interval_is_wider_than_that_of_either() -> None:
    runs = a_run("monday", 1.05), a_run("tuesday", 1.05, first=6)
    own = cpu(two_compared(*runs, anyway=False).comparisons).resolution
    parts = [cpu(two_compared(run, run, anyway=False).comparisons).resolution for run in runs]
    assert own is not None
    assert all(part is not None and own > part / math.sqrt(2) for part in parts)
    assert cpu(two_compared(*runs, anyway=False).comparisons).verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)


def test_a_single_start_gives_no_interval_and_no_verdict() -> None:
    result = two_compared(a_run("monday", 1.05), a_run("tuesday", 1.2, starts=1), anyway=False)
    compared = cpu(result.comparisons)
    assert compared.verdict is None
    assert compared.ratio is not None
    assert compared.ratio.low is None


def test_ratios_to_other_baselines_are_refused() -> None:
    monday = a_run("monday", 1.05)
    with pytest.raises(UsageError, match=r"against different builds of the baseline A \(aa and ee\)") as refused:
        two_compared(monday, a_run("tuesday", 1.05, builds=("ee", "bb")), anyway=True)
    assert "redline history" in refused.value.hint
    with pytest.raises(
        UsageError, match="their baseline A may not be the same: Redline does not know its build in both"
    ):
        two_compared(monday, a_run("tuesday", 1.05, builds=("", "bb")), anyway=True)
    load = next(iter(monday.manifest.plan.cells.values())).load.lasting(7)
    with pytest.raises(UsageError, match="against different baselines or under different loads"):
        two_compared(monday, compared_run({"home": Cost(1.05)}, load=load), anyway=True)


def test_what_one_of_them_lacks_is_said() -> None:
    with pytest.raises(UsageError, match="have no cell in common"):
        two_compared(a_run("monday", 1.05), compared_run({"other": Cost(1.05)}), anyway=True)


def test_what_is_compared_is_said() -> None:
    result = two_compared(a_run("monday", 1.05), a_run("tuesday", 1.155, first=6), anyway=False)
    sections = list(pair_sections(result.comparisons, base="monday", other="tuesday", by_ratios=True))
    assert BY_RATIOS in str(sections[0])
