"""Comparisons by duets alone: the metric with the verdict, the described metrics, and their families."""

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.analysis.compare import CAVEAT, unwanted
from redline.document import format as fmt
from redline.model import Comparison, Metric, Run, Scenario, Verdict
from redline.model.exchange import Request
from redline.render import RENDERERS, summary, terminal
from redline.suite.planning import is_mix
from tests.fakes.compared import Cost, compared_run


def with_suite(run: Run, **update: object) -> Run:
    plan = run.manifest.plan
    changed = plan.model_copy(update={"suite": plan.suite.model_copy(update=update)})
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": changed})})


def with_duets(run: Run, **update: object) -> Run:
    return run.model_copy(update={"duets": tuple(one.model_copy(update=update) for one in run.duets)})


def compared(run: Run) -> dict[Metric, Comparison]:
    return {one.metric: one for one in build_report(run).comparisons if one.ratio}


def test_the_verdict_is_on_cpu_per_request_and_the_rest_is_described() -> None:
    found = compared(compared_run())
    cpu = found[Metric.CPU_PER_REQUEST]
    assert (cpu.verdict, cpu.matters, cpu.primary) == (Verdict.SLOWER, True, True)
    assert (cpu.family_name, cpu.family) == ("CPU per request against A", 1)
    others = [one for metric, one in found.items() if metric is not Metric.CPU_PER_REQUEST]
    assert {Metric.THROUGHPUT, Metric.P50, Metric.P90, Metric.P99} <= set(found)
    assert all(one.verdict is None and one.p is None and one.duet for one in others)


@pytest.mark.parametrize("metric", [Metric.THROUGHPUT, Metric.P75, Metric.P95, Metric.P99])
def test_the_suite_says_what_the_verdict_is_on(metric: Metric) -> None:
    found = compared(with_suite(compared_run(), metric=metric))
    assert [one.metric for one in found.values() if one.verdict] == [metric]
    assert found[Metric.CPU_PER_REQUEST].verdict is None


@pytest.mark.parametrize("metric", [Metric.CPU_PER_REQUEST, Metric.P75, Metric.P95])
def test_the_table_of_several_requests_has_the_verdict_and_the_control(metric: Metric) -> None:
    report = build_report(with_suite(compared_run({"home": Cost(1.05), "cart": Cost()}), metric=metric))
    text = RENDERERS["md"](report).decode()
    assert f"**B over A**\n\n| workload | {metric.words} | A over A |\n" in text
    others = text.partition("**B over A** other metrics\n\n")[2].splitlines()[0]
    assert metric.words not in others
    assert "A over A" not in others
    assert (
        metric.words
        in terminal.render(summary(report), Console(width=200)).plain.partition("workload")[2].splitlines()[0]
    )


@pytest.mark.parametrize("factor", [1.05, 2.0, 12.0])
def test_a_terminal_shows_the_interval_of_every_ratio(factor: float) -> None:
    report = build_report(compared_run({"home": Cost(factor, noise=0.02)}))
    text = terminal.render(summary(report), Console(width=80)).plain
    table = " ".join(text.partition("Comparisons")[2].split())
    compared = [one for one in report.comparisons if one.metric is Metric.CPU_PER_REQUEST]
    assert compared
    for one in compared:
        assert one.ratio is not None
        assert fmt.change_bounds(one.ratio) in table


def test_response_times_of_users_who_wait_carry_the_caveat() -> None:
    assert compared(compared_run())[Metric.P99].caveat == CAVEAT
    assert compared(compared_run({"home": Cost(1.0)}))[Metric.P99].caveat == ""


def test_a_percentile_of_too_few_requests_is_refused() -> None:
    run = with_suite(compared_run(starts=1), metric=Metric.P999)
    (one,) = [one for one in build_report(run).comparisons if one.metric is Metric.P999]
    assert one.refused == "2,000 requests are too few for p99.9"


def test_where_cpu_time_is_not_known_the_rate_is_judged() -> None:
    run = compared_run()
    duets = []
    for one in run.duets:
        assert one.traffic
        blocks = tuple(
            block.model_copy(update={"slices": tuple(x.model_copy(update={"cpu_ns": ()}) for x in block.slices)})
            for block in one.traffic.blocks
        )
        duets.append(one.model_copy(update={"traffic": one.traffic.model_copy(update={"blocks": blocks})}))
    found = compared(run.model_copy(update={"duets": tuple(duets)}))
    assert [(one.metric, one.verdict) for one in found.values() if one.primary] == [(Metric.THROUGHPUT, Verdict.SLOWER)]


def test_one_start_is_enough_only_of_servers_that_somebody_else_runs() -> None:
    ours = compared(compared_run(starts=1))[Metric.CPU_PER_REQUEST]
    assert ours.verdict is None
    theirs = compared(with_duets(compared_run(starts=1), servers=(None, None, None)))[Metric.CPU_PER_REQUEST]
    assert theirs.verdict is Verdict.SLOWER


def test_requests_are_a_family_and_their_mix_is_a_question_of_its_own() -> None:
    run = compared_run({"home": Cost(1.05), "search": Cost(), "cart": Cost(), "mix": Cost(1.02)})
    cells = run.manifest.plan.cells
    judged = [one for one in build_report(run).comparisons if one.verdict]
    names = {cells[one.cell_id].scenario.name: (one.family_name, one.family) for one in judged}
    assert names == {
        **dict.fromkeys(("home", "search", "cart"), ("CPU per request against A", 3)),
        "mix": ("CPU per request of mix against A", 1),
    }
    assert next(cells[one.cell_id].scenario.name for one in unwanted(judged, {Verdict.SLOWER})) == "home"


def test_a_mix_holds_the_requests_of_others() -> None:
    home, search = (Scenario(name=name, request=Request(path=f"/{name}")) for name in ("home", "search"))
    both = Scenario(name="both", request=home.request, others=(search.request.model_copy(update={"weight": 9}),))
    assert is_mix(both, (home, search, both))
    assert not is_mix(both, (home, both))
    assert not is_mix(home, (home, search, both))


def test_what_is_not_kept_is_measured_again_and_not_resumed() -> None:
    run = compared_run({"home": Cost(1.0, noise=0.2)}, starts=4)
    kept, gone = (
        [finding.message for cell in build_report(run, folder).cells for finding in cell.findings]
        for folder in ("runs/AB", None)
    )
    assert any("`redline ab --resume runs/AB --for " in message for message in kept)
    assert any("take `--for " in message for message in gone)
    assert not [message for message in gone if "--resume" in message]
