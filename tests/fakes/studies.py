"""Handmade reports of studies: many servers, baselines of their own, options, effects and rankings."""

import random
from collections.abc import Iterable, Sequence
from functools import cache

from redline.model import (
    COMPARED,
    CellReport,
    Comparison,
    Counts,
    Effect,
    Grade,
    Histogram,
    Metric,
    Outcomes,
    Percentile,
    Place,
    Ranking,
    Report,
)
from tests.fakes import report_cells, reports

PAIRS = {
    "http4s.tapir": "http4s.vanilla",
    "http4s.blaze-tapir": "http4s.blaze-vanilla",
    "netty.tapir-future": "netty.vanilla",
    "netty.tapir-cats": "netty.vanilla",
    "netty.tapir-sync": "netty.vanilla",
    "pekko.tapir": "pekko.vanilla",
    "play.tapir": "play.vanilla",
    "vertx.tapir-future": "vertx.vanilla",
    "vertx.tapir-cats": "vertx.vanilla",
    "zio-http.tapir": "zio-http.vanilla",
}
SCENARIOS = ("SimpleGet", "SimpleGetMulti", "PostBytes", "PostString", "PostLongBytes", "PostLongString")
USERS = (1, 3, 128)
INTERCEPTORS = ("", "+interceptor=server-log")
TRIALS = 3


def study(
    pairs: dict[str, str] = PAIRS,
    scenarios: Sequence[str] = SCENARIOS,
    users: Sequence[int] = USERS,
    interceptors: Sequence[str] = INTERCEPTORS,
) -> Report:
    """Every server of `pairs` against its baseline at the same interceptor; some cells invalid, all verdicts."""
    servers = [server for base in dict.fromkeys(pairs.values()) for server in (base, *_on(base, pairs))]
    cells: dict[tuple[str, str, int], CellReport] = {}
    for scenario in scenarios:
        for count in users:
            for server in (name + option for name in servers for option in interceptors):
                cells[server, scenario, count] = _cell(server, scenario, count, _name(server) not in pairs)
            cells["oracle.null", scenario, count] = _cell("oracle.null", scenario, count, is_baseline=False)
    comparisons = [
        found
        for (server, scenario, count), cell in cells.items()
        if (base := _base(server, pairs)) is not None
        for found in compared(cell, cells[base, scenario, count])
    ]
    report = reports.report(list(cells.values()), tuple(comparisons))
    run = report.run.model_copy(
        update={"name": "20261121T060708-tapir", "suite": "tapir", "about": "what Tapir costs on top of each backend"}
    )
    effects = (*_option_effects(cells), *_scenario_effects(cells))
    rankings = tuple(_rankings(cells, scenarios, users, interceptors))
    return report.model_copy(update={"run": run, "effects": effects, "rankings": rankings})


@cache
def big() -> Report:
    """The published study's size: 17 servers, 6 scenarios, 3 loads, 2 settings, and the ceiling."""
    return study()


@cache
def small() -> Report:
    """Two pairs, two scenarios, one load, two settings."""
    pairs = {name: PAIRS[name] for name in ("http4s.tapir", "vertx.tapir-future")}
    return study(pairs, SCENARIOS[:2], (128,))


def compared(cell: CellReport, baseline: CellReport) -> Iterable[Comparison]:
    """The ratio of the two estimates in every compared metric, or why there is none."""
    for metric in COMPARED:
        sides = (("the cell", cell), ("the baseline", baseline))
        bad = next((f"{what} is invalid" for what, one in sides if not one.valid), "")
        if bad:
            yield Comparison(
                metric=metric,
                cell_id=cell.cell_id,
                baseline_id=baseline.cell_id,
                ratio=None,
                verdict=None,
                threshold=0.02,
                refused=f"{bad}: Sent 14,210/s of 20,000/s (71%).",
            )
            continue
        ratio = cell.estimates[metric].value / baseline.estimates[metric].value
        width = random.Random(cell.slug + metric).choice((0.004, 0.011, 0.03, 0.06))
        yield report_cells.comparison(metric, cell.cell_id, baseline.cell_id, ratio, width)


def _on(base: str, pairs: dict[str, str]) -> list[str]:
    return [server for server, its in pairs.items() if its == base]


def _base(server: str, pairs: dict[str, str]) -> str | None:
    name, plus, option = server.partition("+")
    return pairs[name] + plus + option if name in pairs else None


def _name(server: str) -> str:
    return server.partition("+")[0]


@cache
def _latencies(p50_us: int) -> Histogram:
    return report_cells.log_normal(p50_us * 1e3, 0.35, 20_000)


def _cell(server: str, scenario: str, users: int, is_baseline: bool) -> CellReport:
    """As `report_cells.cell`, with the costs of layer, body and log, and latencies from few distributions."""
    slug = f"{server}.{scenario}.users{users}"
    rng = random.Random(slug)
    cost = random.Random(_name(server) + scenario).uniform(0.97, 1.25) if "tapir" in server else 1.0
    cost *= {"PostLongBytes": 60.0, "PostLongString": 75.0}.get(scenario, 1.0)
    cost *= 1.15 if "server-log" in server else 1.0
    cost *= 2.6 if server.startswith("play.vanilla") and scenario == "SimpleGetMulti" else 1.0
    cost *= random.Random(server.partition(".")[0]).uniform(0.8, 1.3)
    rate = {1: 9_000.0, 3: 21_000.0, 128: 48_000.0}.get(users, 30_000.0) / cost
    latencies = _latencies(int(users / rate * 1e6 * 0.93) // 5 * 5 + 5)
    quantiles_ns = latencies.quantiles_ns(report_cells.QS)
    percentiles = tuple(Percentile(q=q, ns=ns) for q, ns in zip(report_cells.QS, quantiles_ns, strict=True))
    done = int(rate * TRIALS)
    invalid = rng.random() < 0.02 and server != "oracle.null"
    cell = CellReport(
        cell_id=f"{slug}-{rng.getrandbits(32):08x}",
        slug=slug,
        server=server,
        build=random.Random(server).randbytes(32).hex(),
        runtime_version="OpenJDK 21.0.8+9-LTS",
        scenario=scenario,
        load=f"users{users}",
        load_text=f"closed, {users} user{'s' if users > 1 else ''}, 25s",
        role="ceiling" if server == "oracle.null" else "subject",
        is_baseline=is_baseline,
        valid=not invalid,
        trials_planned=TRIALS,
        trials=tuple(report_cells.trial(rng, round_, rate, latencies, 1.7e9 / rate) for round_ in range(TRIALS)),
        estimates={} if invalid else report_cells.estimates(rate, latencies, 1.7e9 / rate, TRIALS),
        counts=Counts(due=done, sent=done, completed=done, outcomes=Outcomes(ok=done), status={"2xx": done}),
        response=latencies,
        response_percentiles=percentiles,
        service_percentiles=percentiles,
        timeline=tuple(m for round_ in range(TRIALS) for m in report_cells.timeline(rng, round_ * 6, rate, latencies)),
        findings=(),
    )
    return cell if not invalid else _doubted(cell)


def _doubted(cell: CellReport) -> CellReport:
    missed = report_cells.finding(
        "rate-missed",
        Grade.INVALID,
        "Sent 14,210/s of 20,000/s (71%).",
        "Lower the rate, or give the engine more workers or cores.",
        cell.cell_id,
    )
    return cell.model_copy(update={"findings": (missed,)})


def _option_effects(cells: dict[tuple[str, str, int], CellReport]) -> Iterable[Effect]:
    for (server, scenario, count), cell in cells.items():
        name, plus, _ = server.partition("+")
        if plus:
            for found in compared(cell, cells[name, scenario, count]):
                yield Effect(axis="interceptor", value="server-log", reference="off", comparison=found)


def _scenario_effects(cells: dict[tuple[str, str, int], CellReport]) -> Iterable[Effect]:
    for (server, scenario, count), cell in cells.items():
        if scenario == "SimpleGetMulti" and server != "oracle.null":
            for found in compared(cell, cells[server, "SimpleGet", count]):
                yield Effect(axis="scenario", value=scenario, reference="SimpleGet", comparison=found)


def _rankings(
    cells: dict[tuple[str, str, int], CellReport],
    scenarios: Sequence[str],
    users: Sequence[int],
    interceptors: Sequence[str],
) -> Iterable[Ranking]:
    for scenario in scenarios:
        for count in users:
            for option in interceptors:
                here = [
                    cell
                    for (server, its_scenario, its_count), cell in cells.items()
                    if (its_scenario, its_count) == (scenario, count)
                    and cell.valid
                    and cell.role == "subject"
                    and ("+" in server) == bool(option)
                ]
                yield Ranking(
                    scenario=scenario,
                    load=f"users{count}",
                    setting=option.lstrip("+") or ("interceptor=off" if len(interceptors) > 1 else ""),
                    metric=Metric.THROUGHPUT,
                    places=tuple(_places(here)),
                )


def _places(cells: list[CellReport]) -> Iterable[Place]:
    """Cells whose intervals hold the first of their rank share it."""
    ordered = sorted(cells, key=lambda cell: -cell.estimates[Metric.THROUGHPUT].value)
    rank, first = 0, 0.0
    for place, cell in enumerate(ordered, 1):
        found = cell.estimates[Metric.THROUGHPUT]
        if found.high is None or not rank or found.high < first:
            rank, first = place, found.low or found.value
        yield Place(rank=rank, cell_id=cell.cell_id, estimate=found)
