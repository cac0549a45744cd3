"""Reports of searches on simulated servers: seeded, and with known truths."""

from functools import cache

import numpy as np

from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer, probe, with_curve
from redline.limits.doubts import Seen
from redline.model import AttachedServer, Cell, Histogram, Objective, Skipped, Suite, Variant
from redline.model.limits import Beyond, BeyondMoment, CellLimit, LimitAnswer, LimitProbe, LimitReport
from redline.search import Converged, Doomed, Proposal, Search, Settings
from redline.search.curve import curve, rates_for_curve
from redline.search.overload import judge_overload, overload_plan
from redline.suite import parse_objectives
from tests.fakes.overload import Server
from tests.fakes.queues import Queue
from tests.fakes.recordings import simulated_cell, simulated_run
from tests.fakes.reports import NASTY, environment

LOAD = "open, poisson, 256 connections, 2 s after 1 s"
GOOD = "p99 < 50ms, errors < 1%"
LOOSE = "p99 < 200ms, errors < 1%"
PROBE_S = 2.0


def sets(**texts: str) -> dict[str, tuple[Objective, ...]]:
    return {name: parse_objectives(text) for name, text in texts.items()}


def searched(slug: str, queue: Queue, server: Server, *, seed: int, scenario: str = "SimpleGet") -> CellLimit:
    """A search on a queue, and an overload test on a server that stands for the same server."""
    rng = np.random.default_rng([seed, 5])
    search = Search(sets(good=GOOD, acceptable=LOOSE), Settings(start_per_s=500, lowest_per_s=50, precision=0.06))
    whys = []
    while isinstance(step := search.next(), Proposal):
        search.add(queue.probe(step.rate_per_s, rng, whole=step.whole))
        whys.append(step.why)
    probes = [probe(each, search.sets, why) for each, why in zip(search.evidence, whys, strict=True)]
    lacking = rates_for_curve(curve(probes), 50)
    probes.extend(probe(queue.probe(rate, rng), search.sets, "for the curve", "curve") for rate in lacking)
    low = [(each.low_per_s, each.high_per_s) for each in step.limits]
    plan = overload_plan(low, max(each.answered_per_s for each in search.evidence), PROBE_S)
    limit = CellLimit(
        slug=slug,
        server=slug.partition("+")[0],
        scenario=scenario,
        load=LOAD,
        build="0123abcd" * 8,
        runtime_version="rustc 1.95.0",
        ended="converged" if isinstance(step, Converged) else "doomed" if isinstance(step, Doomed) else "exhausted",
        reason=getattr(step, "reason", ""),
        confirmed=getattr(step, "confirmed", False),
        limits=tuple(answer(each, search, Seen(probes)) for each in step.limits),
        probes=tuple(probes),
    )
    return with_curve(limit, judge_overload(plan, server.slices(plan, rng)))


@cache
def busy() -> CellLimit:
    """M/M/1 of 1,500/s that is only busy under overload."""
    return searched("rust.hyper", Queue(exponential(1500), seconds=PROBE_S), Server(1500), seed=1)


@cache
def collapsing() -> CellLimit:
    """M/M/1 of 1,000/s with 5 ms that no load changes; under overload, it works more the more requests wait."""
    queue = Queue(exponential(1000), base_s=0.005, seconds=PROBE_S)
    return searched("scala.http4s+routes=128", queue, Server(1000, slower=lambda waiting: 1 + waiting / 300), seed=2)


@cache
def doomed() -> CellLimit:
    """A search that meets nothing: every response takes 300 ms."""
    queue = Queue(exponential(400), base_s=0.3, seconds=PROBE_S)
    cell = searched("clojure.ring", queue, Server(400), seed=3)
    return cell.model_copy(update={"beyond": None, "no_beyond": "no rate above the limit is known"})


def bare() -> CellLimit:
    """A search that was interrupted before its first probe was over."""
    return CellLimit(
        slug="go.nethttp",
        server="go.nethttp",
        scenario="SimpleGet",
        load=LOAD,
        ended="interrupted",
        confirmed=False,
        limits=(),
        probes=(),
        no_knee="the server kept up at 0 of the rates that were tried: a knee takes 3",
        no_beyond="interrupted",
    )


def by_hand() -> LimitReport:
    """A small search without simulation: its bytes do not change with the search."""
    times = {"p50_ns": 1_000_000, "p90_ns": 2_000_000, "p99_ns": None, "p999_ns": None}
    kept = [
        client_limited().model_copy(
            update={
                "rate_per_s": rate,
                "answered_per_s": rate,
                "offered_per_s": rate,
                "response": Histogram.of([mean_ms * 1e6] * 900),
                "errors": 0,
                "hopeless": False,
                "overloaded": False,
                "client": "",
                "why": "doubled: nothing failed yet",
            }
        )
        for rate, mean_ms in ((250.0, 1.3), (500.0, 2.0), (900.0, 10.0))
    ]
    fresh = kept[2].model_copy(update={"phase": "confirm", "fresh": True, "start": 1, "why": "fresh"})
    moments = [
        BeyondMoment(
            at_s=at, stage=stage, asked_per_s=asked, answered_per_s=700, errors_per_s=0, backlog=waiting, **two
        )
        for at, stage, asked, waiting, two in (
            (1.0, "before", 700, 0, {"p50_ns": 1_000_000, "p99_ns": 2_000_000}),
            (2.0, "overload", 1300, 600, {"p50_ns": None, "p99_ns": None}),
            (3.0, "after", 700, 600, {"p50_ns": 800_000_000, "p99_ns": 900_000_000}),
        )
    ]
    beyond = Beyond(
        calm_per_s=700,
        overload_per_s=1300,
        before_s=1,
        overload_s=1,
        after_s=1,
        capacity_per_s=1000,
        goodput="sags",
        goodput_share=0.7,
        collapsed_after_s=None,
        recovery="does not come back",
        backlog_at_most=600,
        backlog_gone_s=None,
        back_s=None,
        p50_before_ns=1_000_000,
        p50_after_ns=800_000_000,
        p99_before_ns=2_000_000,
        p99_after_ns=900_000_000,
        errors_overload=0,
        errors_after=0,
        reason="600 requests still waited, no fewer as time went by",
        course=tuple(moments),
    )
    good = LimitAnswer(
        name="good",
        passed_per_s=880,
        failed_per_s=920,
        confidence=0.95,
        decided=True,
        method="queue",
        binding="p99 < 50ms",
        conditions=("p99 < 50ms", "errors < 1%"),
        met_somewhere=True,
        missed_somewhere=True,
    )
    low = good.model_copy(update={"name": "p50 < 1us", "failed_per_s": 250, "passed_per_s": None, "confidence": None})
    single = low.model_copy(
        update={"method": "single rates", "met_somewhere": False, "reason": "even 250/s does not meet p50 < 1us"}
    )
    limit = CellLimit(
        slug="rust.hyper+http2",
        server="rust.hyper",
        scenario="SimpleGet",
        load=LOAD,
        build="0123abcd" * 8,
        runtime_version="rustc 1.95.0",
        ended="converged",
        confirmed=True,
        limits=(good, single),
        probes=(*kept, fresh, client_limited().model_copy(update=times)),
    )
    cell = with_curve(limit, beyond)
    return report(cell, bare(), skipped=(Skipped(slug="play.vanilla.SimpleGet", reason="needs a JDK of 21 at least"),))


def client_limited() -> LimitProbe:
    """A search in which the load generator was the limit."""
    return LimitProbe(
        phase="search",
        fresh=False,
        rate_per_s=64_000,
        seconds=2,
        offered_per_s=64_000,
        answered_per_s=41_000,
        errors=3,
        p50_ns=1_000_000,
        p90_ns=2_000_000,
        p99_ns=None,
        p999_ns=None,
        response=Histogram.of([1e6] * 900),
        overloaded=True,
        hopeless=True,
        client="all 256 connections were busy: give -c more",
    )


def report(*cells: CellLimit, **changes: object) -> LimitReport:
    made = LimitReport(
        suite="Breaking points",
        about="Where each of them stops to meet its objectives.",
        started_unix_ns=1_763_722_926_000_000_000,
        command="redline limit suites/limit.yaml",
        seed=7,
        precision=0.06,
        environment=environment(),
        cells=cells,
        suite_text="servers: [rust.hyper]\n",
    )
    return made.model_copy(update=changes)


def whole() -> LimitReport:
    """Several servers, one without an answer, and a server that was skipped."""
    skipped = Skipped(slug="play.vanilla.SimpleGet", reason="needs a JDK of 21 at least")
    return report(busy(), collapsing(), doomed(), skipped=(skipped,))


def alone() -> LimitReport:
    """A running server."""
    cell = busy().model_copy(update={"slug": "127.0.0.1:8080", "server": "127.0.0.1:8080", "build": ""})
    return report(cell, suite="http://127.0.0.1:8080/", about="", suite_text="", command="redline limit URL")


def nasty() -> LimitReport:
    """Every text is hostile."""
    hurt: Beyond | None = busy().beyond
    assert hurt is not None
    cell = busy().model_copy(
        update={
            "slug": NASTY,
            "server": NASTY,
            "scenario": NASTY,
            "load": NASTY,
            "ended": "broken",
            "reason": NASTY,
            "no_knee": NASTY,
            "knee": None,
            "limits": tuple(
                each.model_copy(update={"name": NASTY, "binding": NASTY, "conditions": (NASTY,), "reason": NASTY})
                for each in busy().limits
            ),
            "probes": (client_limited().model_copy(update={"client": NASTY, "why": NASTY}), *busy().probes),
            "beyond": hurt.model_copy(update={"recovery": "not known", "goodput": "not known", "reason": NASTY}),
        }
    )
    return report(cell, bare(), suite=NASTY, about=NASTY, command=NASTY, suite_text=NASTY)


def ends_at(low: float | None, high: float | None, confidence: float | None = 0.95) -> LimitAnswer:
    """The answer of a search for p99 < 50 ms."""
    return LimitAnswer(
        name="p99 < 50ms",
        passed_per_s=low,
        failed_per_s=high,
        confidence=confidence,
        decided=True,
        method="queue" if confidence else "single rates",
        binding="p99 < 50ms",
        conditions=("p99 < 50ms", "errors < 1%"),
        met_somewhere=True,
        missed_somewhere=False,
    )


def rivals(*answers: tuple[LimitAnswer, ...]) -> tuple[Suite, tuple[Cell, ...], dict[str, CellLimit]]:
    """Servers A, B, C, … by commands, with A as their baseline: the suite, its cells, and limits by cell id."""
    names = "ABCDEF"[: len(answers)]
    cells = tuple(
        simulated_cell().model_copy(update={"variant": Variant(entry=AttachedServer(host=name, port=1, label=name))})
        for name in names
    )
    suite = simulated_run().manifest.plan.suite.model_copy(
        update={"variants": tuple(cell.variant for cell in cells), "baseline": "A", "baselines": {}, "threshold": 0.02}
    )
    found = {
        cell.id: CellLimit(
            slug=cell.slug,
            server=name,
            target=f"./{name} --port {{port}}",
            scenario="requests",
            load="open",
            ended="converged",
            confirmed=False,
            limits=tuple(answer),
            probes=(),
        )
        for cell, name, answer in zip(cells, names, answers, strict=True)
    }
    return suite, cells, found
