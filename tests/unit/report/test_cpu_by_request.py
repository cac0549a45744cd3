"""Which request of a mix uses the CPU time: shares with intervals, and when they are not known."""

import csv
import io

import pytest

from redline.analysis import build_report
from redline.analysis.duet import Duet
from redline.document.blocks import Medium
from redline.model import DuetRecording, MixCpu, Outcomes, Report, RequestTraffic, Run
from redline.model.journey import Journey, JourneyStep
from redline.render import csvfile
from redline.render import markdown as md
from redline.report.run import OUTLINE as RUN_OUTLINE
from redline.stats.mixes import METHOD_WITHIN, OF_SHARES
from tests.fakes.compared import Cost, compared_run


def loaded(recording: DuetRecording, cost: float, drawn: tuple[int, ...]) -> DuetRecording:
    """The recording of requests that cost this many times as much, with the requests that a mix drew."""
    traffic = recording.traffic
    assert traffic is not None
    blocks = []
    for block in traffic.blocks:
        slices = [
            slice_.model_copy(update={"cpu_ns": tuple(round((ns or 0) * cost) for ns in slice_.cpu_ns)})
            for slice_ in block.slices
        ]
        blocks.append(block.model_copy(update={"slices": tuple(slices)}))
    targets = []
    for target in traffic.targets:
        response = target.response
        by_request = tuple(RequestTraffic(outcomes=Outcomes(ok=count), response=response) for count in drawn)
        targets.append(target.model_copy(update={"requests": by_request}))
    changed = {"blocks": tuple(blocks), "targets": tuple(targets)}
    return recording.model_copy(update={"traffic": traffic.model_copy(update=changed)})


def mixed(run: Run, mix: float, *, without: str = "") -> Report:
    """A run of `home` and `cart`, which costs 9 times as much, whose mix costs `mix` times the mean of both."""
    cells = run.manifest.plan.cells
    times = {"home": 1.0, "cart": 9.0, "mix": 5.0 * mix}
    made = []
    for recording in run.duets:
        name = cells[recording.cell_ids[0]].scenario.name
        if name != without:
            made.append(loaded(recording, times[name], (1000, 1000) if name == "mix" else ()))
    return build_report(run.model_copy(update={"duets": tuple(made)}))


COMPARED = {"mix": Cost(1.0), "home": Cost(1.0), "cart": Cost(1.0)}


def by_server(report: Report) -> dict[str, MixCpu]:
    servers = {cell.cell_id: cell.server for cell in report.cells}
    return {servers[divided_.cell_id]: divided_ for divided_ in report.cpu_by_request}


def test_a_report_says_which_request_uses_most_of_the_cpu() -> None:
    report = mixed(compared_run(COMPARED), 1.0)
    known = by_server(report)
    assert [*known] == ["A", "B"]
    for server, found in known.items():
        home, cart = found.requests
        assert (home.of_requests, cart.of_requests) == (0.5, 0.5)
        assert cart.share.value == pytest.approx(0.9, abs=0.01)
        assert home.share.value + cart.share.value == pytest.approx(1, abs=0.001)
        markdown = md.render(RUN_OUTLINE.text(report, Medium.MARKDOWN)).decode().replace("\\", "")
        assert f"of {server}'s CPU time, 90% [" in markdown
        assert "] goes to GET /cart, which is 50% of the requests" in markdown
        assert "of the CPU" in markdown
    rows = list(csv.DictReader(io.StringIO(csvfile.render(report).decode())))
    (share, *_) = [row for row in rows if row["metric"] == "cpu-of-mix:GET /cart"]
    assert (share["server"], share["unit"]) == ("A", "share")
    assert float(share["low"]) < 0.9 < float(share["high"])
    assert [row["server"] for row in rows if row["metric"] == "cpu-parts-over-mix"] == ["A", "B"]


@pytest.mark.parametrize(("mix", "said"), [(1.25, "20% less"), (0.8, "25% more")])
def test_parts_that_do_not_add_up_are_no_shares(mix: float, said: str) -> None:
    report = mixed(compared_run(COMPARED), mix)
    assert {server: found.requests for server, found in by_server(report).items()} == {"A": (), "B": ()}
    markdown = md.render(RUN_OUTLINE.text(report, Medium.MARKDOWN)).decode().replace("\\", "")
    assert "which request uses most of B's CPU time is not known" in markdown
    assert f"by themselves the requests need {said} than in the mix [" in markdown
    assert "of the CPU" not in markdown


def test_nothing_is_said_where_the_duet_cannot_tell() -> None:
    run = compared_run(COMPARED)
    assert mixed(run, 1.0, without="home").cpu_by_request == ()
    assert build_report(run).cpu_by_request == ()  # no counts by request
    assert build_report(compared_run({"home": Cost(1.0)})).cpu_by_request == ()


def test_too_few_starts_are_given_as_the_reason() -> None:
    report = mixed(compared_run(COMPARED, starts=2), 1.0)
    assert {server: found.parts_over_mix for server, found in by_server(report).items()} == {"A": None, "B": None}
    markdown = md.render(RUN_OUTLINE.text(report, Medium.MARKDOWN)).decode().replace("\\", "")
    few = "fewer than 3 starts measured the mix and all of its requests"
    assert f"which request uses most of the CPU time of A and B is not known: {few}" in markdown
    assert "| of the CPU |" not in markdown
    assert "cpu-parts-over-mix" not in csvfile.render(report).decode()


def test_servers_that_were_not_warm_are_given_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    cold = "in 1 of 3 starts the servers were not warm"
    monkeypatch.setattr(Duet, "unsettled", property(lambda duet: cold))
    reasons = {found.reason for found in by_server(mixed(compared_run(COMPARED), 1.0)).values()}
    assert reasons == {f"{cold} under the mix"}


def test_servers_that_were_already_running_have_one_start() -> None:
    run = compared_run(COMPARED, starts=1)
    running = [recording.model_copy(update={"servers": (None, None, None)}) for recording in run.duets]
    known = by_server(mixed(run.model_copy(update={"duets": tuple(running)}), 1.0))
    (_, cart) = known["B"].requests
    assert (cart.share.n, cart.share.method) == (1, METHOD_WITHIN + OF_SHARES)


def test_the_requests_of_a_journey_are_not_divided() -> None:
    run = compared_run(COMPARED)
    journey = Journey(steps=(JourneyStep(), JourneyStep()))
    cells = {
        cell_id: cell.model_copy(update={"scenario": cell.scenario.model_copy(update={"journey": journey})})
        if cell.scenario.others
        else cell
        for cell_id, cell in run.manifest.plan.cells.items()
    }
    manifest = run.manifest.with_plan(run.manifest.plan.model_copy(update={"cells": cells}))
    assert mixed(run, 1.0).cpu_by_request
    assert mixed(run.model_copy(update={"manifest": manifest}), 1.0).cpu_by_request == ()


def test_a_wide_share_stands_in_the_table_alone() -> None:
    report = mixed(compared_run(COMPARED), 1.0)
    divided_ = report.cpu_by_request[0]
    home, cart = divided_.requests
    wide = cart.model_copy(update={"share": cart.share.model_copy(update={"low": 0.3})})
    changed = report.model_copy(update={"cpu_by_request": (divided_.model_copy(update={"requests": (home, wide)}),)})
    markdown = md.render(RUN_OUTLINE.text(changed, Medium.MARKDOWN)).decode().replace("\\", "")
    assert "of A's CPU time" not in markdown
    assert "90% [30, " in markdown


def test_servers_whose_cpu_time_is_unknown_have_no_shares() -> None:
    run = compared_run(COMPARED)
    unknown = [
        recording.model_copy(update={"traffic": recording.traffic.without_cpu(frozenset({1}))})
        for recording in run.duets
        if recording.traffic is not None
    ]
    report = mixed(run.model_copy(update={"duets": tuple(unknown)}), 1.0)
    assert [*by_server(report)] == ["A"]
