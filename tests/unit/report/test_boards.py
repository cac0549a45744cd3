"""Comparisons laid out by server, scenario and load: the names of lines, and that nothing is lost or left unsaid."""

from redline.model import COMPARED, Comparison, Effect, Metric, Report
from redline.report.boards import (
    Naming,
    ServerPair,
    Workload,
    against_in_short,
    cost_boards,
    known_defaults,
    refusals,
    steps,
)
from redline.report.results import ranks_of
from redline.report.views import groups
from tests.fakes import reports, studies


def test_every_comparison_has_its_place() -> None:
    for report in (reports.healthy(), reports.doubtful(), studies.small()):
        placed = [comparison for board in cost_boards(report) for comparison in board.comparisons.values()]
        assert sorted(placed, key=str) == sorted(report.comparisons, key=str)
        for board in cost_boards(report):
            assert {(line, column) for line in board.lines for column in board.columns} >= set(board.comparisons)


def test_the_setting_is_what_both_sides_have_and_what_varies() -> None:
    throughput, *others = cost_boards(studies.small())
    assert throughput.settings == ("interceptor=off", "interceptor=server-log")
    assert throughput.lines[0] == ServerPair("http4s.tapir", "http4s.vanilla", "interceptor=off")
    assert throughput.against == ""
    assert [board.metric for board in (throughput, *others)] == list(COMPARED)


def test_options_that_only_one_side_has_stay_in_its_name() -> None:
    pairs = [("rust.axum", "rust.hyper"), ("rust.axum+routes=128", "rust.hyper")]
    lines = Naming({("rust.axum", "routes"): "1"}).named(pairs)
    assert [lines[pair].server for pair in pairs] == ["rust.axum", "rust.axum+routes=128"]
    assert {line.setting for line in lines.values()} == {""}


def test_options_that_all_share_are_not_shown() -> None:
    pairs = [("a.x+heap=2g+http2", "a.y+heap=2g+http2"), ("a.z+heap=2g+http2", "a.y+heap=2g+http2")]
    assert list(Naming({}).named(pairs).values()) == [ServerPair("a.x", "a.y", ""), ServerPair("a.z", "a.y", "")]


def test_a_default_that_is_not_known_leaves_its_setting_without_a_name() -> None:
    report = studies.small().model_copy(update={"effects": ()})
    assert known_defaults(report) == {}
    assert cost_boards(report)[0].settings == ("", "interceptor=server-log")


def test_defaults_are_marked_by_effects_on_either_side() -> None:
    report = studies.small()
    names = ("http4s.vanilla", "http4s.tapir", "vertx.vanilla", "vertx.tapir-future")
    defaults = {(name, "interceptor"): "off" for name in names}
    assert known_defaults(report) == defaults
    turned = [_turned(effect) for effect in report.effects if effect.axis == "interceptor"]
    assert known_defaults(report.model_copy(update={"effects": tuple(turned)})) == defaults


def test_servers_with_different_defaults_keep_their_own_settings_and_numbers() -> None:
    report = _other_default(studies.small(), "vertx.")
    assert known_defaults(report) == {
        ("http4s.vanilla", "interceptor"): "off",
        ("http4s.tapir", "interceptor"): "off",
        ("vertx.vanilla", "interceptor"): "server-log",
        ("vertx.tapir-future", "interceptor"): "server-log",
    }
    for board, plain in zip(cost_boards(report), cost_boards(studies.small()), strict=True):
        assert board.comparisons == plain.comparisons
    for step in steps(report):
        assert all(len(board.comparisons) == _count(report, step.axis, board.metric) for board in step.boards)


def _other_default(report: Report, family: str) -> Report:
    """The same study, but for this family the default is server-log, which slugs then leave out."""

    def renamed(server: str) -> str:
        name, plus, _ = server.partition("+")
        return server if not name.startswith(family) else name if plus else f"{name}+interceptor=off"

    cells = tuple(cell.model_copy(update={"server": renamed(cell.server)}) for cell in report.cells)
    return report.model_copy(update={"cells": cells})


def _count(report: Report, axis: str, metric: Metric) -> int:
    return sum(effect.axis == axis and effect.comparison.metric is metric for effect in report.effects)


def test_a_default_of_one_side_alone_is_no_setting_of_both() -> None:
    pairs = [("a.x", "b.x"), ("a.x+n=2", "b.x+n=2"), ("a.x+n=3", "b.x+n=3")]
    for defaults in ({("a.x", "n"): "1"}, {("a.x", "n"): "1", ("b.x", "n"): "4"}):
        assert [line.setting for line in Naming(defaults).named(pairs).values()] == ["", "n=2", "n=3"]
    one_side = [("a.x+n=2", "b.x"), ("a.x+n=3", "b.x+n=3")]
    both = {("a.x", "n"): "1", ("b.x", "n"): "1"}
    assert list(Naming(both).named(one_side).values()) == [
        ServerPair("a.x+n=2", "b.x", ""),
        ServerPair("a.x", "b.x", "n=3"),
    ]


def test_pairs_that_would_be_called_alike_are_called_by_their_whole_slugs() -> None:
    pairs = [("a.x", "b.x"), ("a.x+n=2", "b.x+n=2"), ("c.x", "b.x")]
    wrong = {("a.x", "n"): "2", ("b.x", "n"): "2"}
    assert Naming(wrong).named(pairs) == {pair: ServerPair(*pair, "") for pair in pairs}


def _turned(effect: Effect) -> Effect:
    found = effect.comparison
    swapped = found.model_copy(update={"cell_id": found.baseline_id, "baseline_id": found.cell_id})
    return effect.model_copy(
        update={"value": effect.reference, "reference": effect.value, "comparison": swapped},
    )


def test_a_ceiling_is_not_held_against_anything() -> None:
    report = reports.healthy()
    ceiling = next(cell for cell in report.cells if cell.role == "ceiling")
    odd = report.comparisons[0].model_copy(update={"cell_id": ceiling.cell_id})
    with_odd = report.model_copy(update={"comparisons": (*report.comparisons, odd)})
    assert [board.lines for board in cost_boards(with_odd)] == [board.lines for board in cost_boards(report)]


def test_steps_are_gathered_by_what_is_stepped_on() -> None:
    interceptor, multi = steps(studies.small())
    assert interceptor.title == "interceptor: server-log against off"
    assert {line.server for line in interceptor.boards[0].lines} == {
        "http4s.vanilla", "http4s.tapir", "vertx.vanilla", "vertx.tapir-future",
    }  # fmt: skip
    assert interceptor.boards[0].settings == ("",)
    assert multi.title == "SimpleGetMulti against SimpleGet"
    assert multi.boards[0].settings == ("interceptor=off", "interceptor=server-log")
    assert sum(len(board.comparisons) for step in (interceptor, multi) for board in step.boards) == len(
        studies.small().effects
    )


def test_few_numbers_of_several_loads_stay_together_and_many_do_not() -> None:
    (name, whole), *none = cost_boards(reports.healthy())[0].parts()
    assert (name, len(whole.comparisons), none) == ("", 4, [])
    parts = cost_boards(reports.healthy())[0].parts(most_numbers=3)
    assert [name for name, _ in parts] == ["saturate", "steady"]
    assert [part.columns for _, part in parts] == [
        (Workload("SimpleGet", load), Workload("PostBytes", load)) for load in ("saturate", "steady")
    ]


def test_a_column_is_named_by_what_distinguishes_it_from_the_others() -> None:
    board = cost_boards(reports.healthy())[0]
    assert [board.title_of(column) for column in board.columns][:2] == ["SimpleGet · saturate", "PostBytes · saturate"]
    assert board.under("steady").title_of(board.columns[0]) == "SimpleGet"


def test_refusals_are_reported_once_with_their_places() -> None:
    (one,) = refusals(cost_boards(reports.doubtful())[1])
    assert one == (
        1,
        "this cell is invalid",
        ((ServerPair("rust.axum", "rust.hyper", ""), Workload("PostBytes", "steady")),),
    )


def test_there_is_no_board_of_refusals_alone_where_no_verdict_is_asked_for() -> None:
    def refused(metric: Metric, *, judged: bool) -> list[Metric]:
        edit = {"ratio": None, "verdict": None, "refused": f"500 requests are too few for {metric}", "primary": judged}
        report = studies.small()
        changed = tuple(c.model_copy(update=edit) if c.metric is metric else c for c in report.comparisons)
        return [board.metric for board in cost_boards(report.model_copy(update={"comparisons": changed}))]

    assert refused(Metric.P999, judged=False) == [metric for metric in COMPARED if metric is not Metric.P999]
    assert refused(Metric.P99, judged=True) == list(COMPARED)


def test_each_baseline_stands_before_what_is_compared_with_it() -> None:
    report = studies.small()
    backwards = report.model_copy(update={"cells": tuple(reversed(report.cells))})
    base = {c.cell_id: c.baseline_id for c in report.comparisons}
    for group in (*groups(report), *groups(backwards)):
        places = {cell.cell_id: place for place, cell in enumerate(group.cells)}
        for cell_id, place in places.items():
            if cell_id in base:
                between = group.cells[places[base[cell_id]] + 1 : place]
                assert places[base[cell_id]] < place
                assert all(base.get(cell.cell_id) == base[cell_id] for cell in between)
        assert group.cells[-1].role == "ceiling"
        assert set(group.against.values()) == {"http4s.vanilla", "vertx.vanilla"}
        assert group.baseline == ""


def test_one_baseline_needs_no_name_in_the_rows() -> None:
    for group in groups(reports.healthy()):
        assert (group.against, group.baseline) == ({}, "rust.hyper")


def test_what_a_server_is_held_against_is_named_without_what_both_have() -> None:
    assert against_in_short("a.x+jdk=21+gc=G1", "a.y+gc=G1+jdk=25") == "a.y+jdk=25"


def test_a_baseline_that_is_not_in_the_report_is_named_by_its_id() -> None:
    report = reports.healthy()
    stray: list[Comparison] = [c.model_copy(update={"baseline_id": "gone-12345678"}) for c in report.comparisons]
    board = cost_boards(report.model_copy(update={"comparisons": tuple(stray)}))[0]
    assert board.against == "gone-12345678"


def test_shared_ranks_are_marked_and_say_within_which_setting() -> None:
    report = studies.small()
    servers = {cell.cell_id: cell.server for cell in report.cells if cell.scenario == "SimpleGet"}
    ranks = [(rank, servers[cell_id]) for cell_id, rank in ranks_of(report).items() if cell_id in servers]
    logged = [(rank.split()[0], server.partition("+")[0]) for rank, server in ranks if "server-log" in rank]
    assert logged == [
        ("1", "http4s.vanilla"),
        ("2=", "http4s.tapir"),
        ("2=", "vertx.vanilla"),
        ("4", "vertx.tapir-future"),
    ]
    assert {rank.partition(" with ")[2] for rank, _ in ranks} == {"interceptor=off", "interceptor=server-log"}
