"""Handmade reports: healthy, without a baseline, with invalid and skipped cells, and hostile."""

from functools import cache

from redline.analysis.compare import SCHEDULED
from redline.findings import RULES
from redline.model import (
    CellReport,
    Comparison,
    Environment,
    Grade,
    Metric,
    Objective,
    ObjectiveResult,
    Report,
    RunReport,
    Skipped,
)
from redline.report.views import weighed_findings
from tests.fakes.report_cells import LOADS, cell, comparison, finding

NASTY = "</script><img src=x onerror=\"document.title='pwned'\"><!-- `|[a](javascript:1) @all\n=1+1"

SUITE_TEXT = """\
servers: [rust.hyper, rust.axum]
ceiling: oracle.null
baseline: rust.hyper
scenarios: [SimpleGet, PostBytes]
loads:
  saturate: {closed: {users: 64}, for: 1s}
  steady:   {open: {rate: 20000, arrivals: poisson}, for: 1s}
trials: 5
"""


@cache
def healthy() -> Report:
    """Two servers and the ceiling, two scenarios, two loads, every verdict, objectives met and missed."""
    cells: list[CellReport] = []
    for scenario, cost in (("SimpleGet", 1.0), ("PostBytes", 1.22)):
        for load, base in (("saturate", 96_000.0), ("steady", 20_000.0)):
            rate = base / cost if load == "saturate" else base
            p50 = (610 if load == "saturate" else 74) * cost
            cells += [
                cell("rust.hyper", scenario, load, rate=rate, p50_us=p50),
                cell("rust.axum", scenario, load, rate=rate * (0.934 if load == "saturate" else 1), p50_us=p50 * 1.06),
                cell("oracle.null", scenario, load, rate=rate * 1.31, p50_us=p50 * 0.72, tail=0.22, role="ceiling"),
            ]
    p99 = Objective(metric="p99", below=True, limit=1.5e6, text="p99 < 1.5 ms")
    cells = [_judged(c, p99) if c.role == "subject" else c for c in cells]
    return report(cells, _compared(cells))


def _judged(subject: CellReport, objective: Objective) -> CellReport:
    actual = subject.estimates[Metric.P99].value
    result = ObjectiveResult(objective=objective, actual=actual, met=actual < objective.limit)
    return subject.model_copy(update={"objectives": (result,)})


def _compared(cells: list[CellReport]) -> tuple[Comparison, ...]:
    """Each subject against the baseline of its group, with every verdict."""
    planted = {
        Metric.THROUGHPUT: (0.934, 0.011),
        Metric.P50: (1.058, 0.016),
        Metric.P99: (1.03, 0.064),
        Metric.P999: (1.02, 0.11),
        Metric.CPU_PER_REQUEST: (1.041, 0.012),
    }
    steady = {
        Metric.P50: (1.01, 0.007),
        Metric.P99: (0.91, 0.05),
        Metric.P999: (0.87, 0.09),
    }
    found = []
    for subject in cells:
        if subject.is_baseline or subject.role == "ceiling":
            continue
        baseline = next(c for c in cells if c.is_baseline and (c.scenario, c.load) == (subject.scenario, subject.load))
        closed = subject.load == "saturate"
        steady[Metric.CPU_PER_REQUEST] = (1.004, 0.01) if subject.scenario == "SimpleGet" else (1.011, 0.014)
        judged = (Metric.THROUGHPUT if closed else Metric.P99, Metric.CPU_PER_REQUEST)
        ids = subject.cell_id, baseline.cell_id
        found += [
            comparison(metric, *ids, *numbers, primary=metric in judged)
            for metric, numbers in (planted if closed else steady).items()
        ]
        if not closed:
            none = {"ratio": None, "refused": SCHEDULED}
            throughput = comparison(Metric.THROUGHPUT, *ids, 1.0, 0.002, primary=False)
            found.append(throughput.model_copy(update=none))
    return tuple(found)


def alone() -> Report:
    """One server, one cell, one trial: no baseline, no interval."""
    only = cell("rust.hyper", "SimpleGet", "saturate", rate=96_000, p50_us=610, baseline="", trials=1)
    few = finding(
        "too-few-trials",
        Grade.WARN,
        "1 trial gives no interval.",
        "Ask for at least 3 trials.",
        only.cell_id,
    )
    return report([only.model_copy(update={"findings": (few,)})], ())


def doubtful() -> Report:
    """The healthy report, with an invalid cell, its refused comparisons, and doubts that many cells share."""
    report = healthy()
    bad = next(c for c in report.cells if c.slug == "rust.axum.PostBytes.steady")
    missed = finding(
        "rate-missed",
        Grade.INVALID,
        "Sent 14,210/s of 20,000/s (71%).",
        "Lower the rate, or give the engine more workers or cores.",
        bad.cell_id,
    )
    steal = "The hypervisor took 3.1% of the CPU time."
    advice = "Run on a machine of your own, or ask for more trials."
    cells: list[CellReport] = []
    for each in report.cells:
        noted = finding("cpu-steal", Grade.WARN, steal, advice, each.cell_id)
        ceiling = finding(
            "near-ceiling",
            Grade.NOTE,
            f"{76_000 + 500 * len(cells):,}/s is {90 + len(cells) % 4}% of what the ceiling reaches here.",
            "The difference to a faster server may not show on this machine.",
            each.cell_id,
        )
        found = (noted, ceiling) if each.is_baseline else (noted,)
        if each.cell_id != bad.cell_id:
            cells.append(each.model_copy(update={"findings": found}))
            continue
        failed = each.trials[0].model_copy(update={"used": False, "failure": "the rate was missed"})
        cells.append(
            each.model_copy(
                update={
                    "valid": False,
                    "estimates": {},
                    "findings": (noted, missed),
                    "trials": (failed, *each.trials[1:]),
                }
            )
        )
    refused = "this cell is invalid"
    comparisons = tuple(
        c.model_copy(update={"ratio": None, "verdict": None, "refused": refused}) if c.cell_id == bad.cell_id else c
        for c in report.comparisons
    )
    return report.model_copy(update={"cells": tuple(cells), "comparisons": comparisons})


def died() -> Report:
    """A valid cell, one of whose trials is left out because its server died."""
    only = cell("rust.hyper", "SimpleGet", "saturate", rate=96_000, p50_us=610, baseline="")
    lost = only.trials[3].model_copy(
        update={"used": False, "failure": "load: it panicked", "log_tail": "<b>panicked</b> at src/main.rs:7\nexit"}
    )
    said = finding(
        "server-died", Grade.INVALID, "Failed in stage load: it panicked.", "Read its log.", only.cell_id
    ).model_copy(update={"position": lost.position})
    trials = (*only.trials[:3], lost, only.trials[4])
    return report([only.model_copy(update={"trials": trials, "findings": (said,)})], ())


def skipping() -> Report:
    """The doubtful report, cut short, with cells that could not be built."""
    report = doubtful()
    skipped = tuple(
        Skipped(slug=f"vertx.vanilla.{scenario}.{load}", reason="mvn is not on the PATH (install: apt install maven)")
        for scenario in ("SimpleGet", "PostBytes")
        for load in LOADS
    )
    run = report.run.model_copy(update={"complete": False, "trials_done": 51})
    return report.model_copy(update={"skipped": skipped, "run": run})


def nasty() -> Report:
    """Hostile text in every field that can hold text."""
    report = skipping()
    texts = {"message": NASTY, "advice": NASTY}
    cells = []
    for index, each in enumerate(report.cells):
        found = tuple(f.model_copy(update=texts) for f in each.findings)
        objective = Objective(metric="errors", below=True, limit=0.001, text=NASTY)
        cells.append(
            each.model_copy(
                update={
                    "slug": f"{NASTY}{index}",
                    "server": f"{NASTY}{index % 3}",
                    "scenario": f"{NASTY}{each.scenario}",
                    "load": f"{NASTY}{each.load}",
                    "load_text": NASTY,
                    "build": NASTY,
                    "runtime_version": NASTY,
                    "findings": found,
                    "objectives": (ObjectiveResult(objective=objective, actual=0.5, met=False, reason=NASTY),),
                    "trials": tuple(t.model_copy(update={"failure": NASTY, "log_tail": NASTY}) for t in each.trials),
                    "estimates": {m: e.model_copy(update={"method": NASTY}) for m, e in each.estimates.items()},
                }
            )
        )
    fields = {"name": NASTY, "suite": NASTY, "about": NASTY, "command": NASTY, "suite_text": NASTY}
    textual = {name: NASTY for name, field in Environment.model_fields.items() if field.annotation is str}
    return report.model_copy(
        update={
            "run": report.run.model_copy(update=fields),
            "environment": report.environment.model_copy(update=textual),
            "cells": tuple(cells),
            "comparisons": tuple(
                c.model_copy(update={"refused": NASTY if c.refused else ""}) for c in report.comparisons
            ),
            "skipped": (Skipped(slug=NASTY, reason=NASTY),),
        }
    )


def report(cells: list[CellReport], comparisons: tuple[Comparison, ...]) -> Report:
    planned = sum(c.trials_planned for c in cells)
    return Report(
        run=RunReport(
            name="20261121T012206-quickstart",
            suite="quickstart",
            about="hyper and axum, side by side, under the ceiling of this machine.",
            started_unix_ns=1_795_224_126_000_000_000,
            command="redline run suites/quickstart.yaml --seed 42",
            seed=42,
            complete=True,
            trials_done=planned,
            trials_planned=planned,
            threshold=0.02,
            suite_text=SUITE_TEXT,
        ),
        environment=environment(),
        cells=tuple(cells),
        comparisons=comparisons,
        skipped=(),
    )


def environment() -> Environment:
    """Two cores of a rented machine."""
    return Environment(
        redline="0.1.0",
        engine="0.1.0",
        commit="1f6c0de+dirty",
        python="3.11.7",
        os="Debian GNU/Linux 12 (bookworm)",
        kernel="6.1.0-31-amd64",
        hostname="bench-1",
        cpu_model="AMD EPYC 7763 64-Core Processor",
        cores=2,
        cores_online=2,
        memory_bytes=8_321_499_136,
        virtual="kvm",
        turbo=None,
        smt=True,
        clock_source="tsc",
        congestion_control="cubic",
        open_files_soft=1024,
        open_files_hard=1_048_576,
        port_range=(32768, 60999),
        tcp_tw_reuse=2,
        somaxconn=4096,
        cgroup="v2",
        cgroup_cpu_limit=2.0,
        load_average_1m=0.31,
        steal_share=0.004,
        busy_share=0.021,
        server_cpus=(0,),
        engine_cpus=(1,),
    )


def marks(cell: CellReport) -> tuple[Grade, ...]:
    """The grades of its findings without duplicates, gravest first; notes of what is good to know are left out."""
    return tuple(dict.fromkeys(one.grade for one in weighed_findings(cell) if not RULES[one.kind].reassures))
