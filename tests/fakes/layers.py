"""Handmade reports with chains of baselines: three layers in two scenarios, and a layer that may not be compared."""

from functools import cache
from itertools import pairwise

from redline.model import CellReport, Comparison, Estimate, Layer, Metric, Report, Waterfall
from tests.fakes.report_cells import TRIALS, cell, comparison
from tests.fakes.reports import report

CHAIN = ("rust.hyper", "rust.axum", "rust.axum+log=on", "rust.axum+log=on+http2")
RATES = dict(zip(CHAIN, (96_000.0, 89_600.0, 61_000.0, 61_300.0), strict=True))
CPU_NS = dict(zip(CHAIN, (17_700.0, 18_940.0, 27_800.0, 27_650.0), strict=True))
REFUSED = "the cell is invalid: Sent 14,210/s of 20,000/s (71%)."
SCENARIOS = {"SimpleGet": 1.0, "PostBytes": 1.22}


@cache
def layered() -> Report:
    """Slower, much slower and equivalent; under `steady` the load decides how many are answered."""
    cells = tuple(
        _with_cpu(
            cell(slug, scenario, load, rate=RATES[slug] / cost if load == "saturate" else 20_000, p50_us=610), cost
        )
        for load in ("saturate", "steady")
        for scenario, cost in SCENARIOS.items()
        for slug in CHAIN
    )
    falls = tuple(_fall(scenario, load, cells) for load in ("saturate", "steady") for scenario in SCENARIOS)
    steps = [step for fall in falls for step in fall.steps]
    compared = tuple(found for step in steps for found in (step.throughput, step.cpu) if found)
    return report(list(cells), compared).model_copy(update={"layers": falls})


def refusing() -> Report:
    """The same, but in one scenario the second layer has nothing to be compared with, and a layer was not run."""
    made = layered()
    first, second, *rest = made.layers
    steps = tuple(_refused(step) if "rust.axum+log=on" in (step.server, step.against) else step for step in first.steps)
    why = f"{CHAIN[0]} was skipped: cargo is not on the PATH"
    gone, whole = (Layer(server=server, against=CHAIN[0], refused=why) for server in (CHAIN[1], CHAIN[-1]))
    without = second.model_copy(
        update={"base_throughput": None, "base_cpu": None, "steps": (gone, *second.steps[1:]), "whole": whole}
    )
    return made.model_copy(update={"layers": (first.model_copy(update={"steps": steps}), without, *rest)})


def _with_cpu(made: CellReport, cost: float) -> CellReport:
    value = CPU_NS[made.server] * cost
    estimate = Estimate(value=value, low=value * 0.991, high=value * 1.009, unit="ns", n=TRIALS, method="by hand")
    baseline = made.server != CHAIN[-1]
    return made.model_copy(
        update={"estimates": made.estimates | {Metric.CPU_PER_REQUEST: estimate}, "is_baseline": baseline}
    )


def _fall(scenario: str, load: str, cells: tuple[CellReport, ...]) -> Waterfall:
    by = {each.server: each for each in cells if (each.scenario, each.load) == (scenario, load)}
    base = by[CHAIN[0]].estimates
    return Waterfall(
        scenario=scenario,
        load=load,
        base=CHAIN[0],
        base_throughput=base[Metric.THROUGHPUT] if load == "saturate" else None,
        base_cpu=base[Metric.CPU_PER_REQUEST],
        steps=tuple(_layer(by[one], by[under]) for under, one in pairwise(CHAIN)),
        whole=_layer(by[CHAIN[-1]], by[CHAIN[0]]),
    )


def _layer(one: CellReport, under: CellReport) -> Layer:
    def compared(metric: Metric) -> Comparison:
        ratio = one.estimates[metric].value / under.estimates[metric].value
        return comparison(metric, one.cell_id, under.cell_id, ratio, 0.011)

    ours, theirs = (each.estimates[Metric.CPU_PER_REQUEST].value for each in (one, under))
    half = 0.01 * theirs
    more = Estimate(
        value=ours - theirs,
        low=ours - theirs - half,
        high=ours - theirs + half,
        unit="ns",
        n=TRIALS,
        method="by hand",
    )
    return Layer(
        server=one.server,
        against=under.server,
        throughput=compared(Metric.THROUGHPUT) if one.load == "saturate" else None,
        cpu=compared(Metric.CPU_PER_REQUEST),
        cpu_ns=more,
    )


def _refused(step: Layer) -> Layer:
    none = {"ratio": None, "verdict": None, "refused": REFUSED}
    return step.model_copy(
        update={
            "throughput": step.throughput.model_copy(update=none) if step.throughput else None,
            "cpu": step.cpu.model_copy(update=none) if step.cpu else None,
            "cpu_ns": None,
        }
    )
