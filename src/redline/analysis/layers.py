"""What each layer costs, where baselines have baselines of their own: chains as waterfalls. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from redline.analysis.compare import Question, compare_by_round, same_rounds, with_verdicts
from redline.analysis.judged import JudgedCell
from redline.model import Comparison, Estimate, Layer, Metric, Plan, Suite, Waterfall
from redline.stats import paired_difference, sample_of

_CPU = Metric.CPU_PER_REQUEST
_METHOD_OF_DUETS = "the ratio of duets times the level of trials alone, both intervals at their ends"


def waterfalls(
    judged: Mapping[str, JudgedCell], plan: Plan, comparisons: Iterable[Comparison] = ()
) -> tuple[Waterfall, ...]:
    """Every chain of two or more steps by scenario and load, in the order of the run's cells, then of the suite.

    A step that is among `comparisons` is that very comparison, so that the report does not judge it twice; the wholes
    in one metric are a family. Of a chain that branches, each branch is a chain of its own that begins with the common
    steps.
    """
    found = {(comparison.cell_id, comparison.baseline_id, comparison.metric): comparison for comparison in comparisons}
    groups: dict[tuple[str, str], dict[str, JudgedCell]] = {}
    for one in judged.values():
        if one.cell.role == "subject":
            groups.setdefault((one.cell.scenario.name, one.cell.load.name), {})[one.cell.variant.slug] = one
    falls = [
        _Bearing(scenario, load, cells, plan, found).waterfall(chain)
        for (scenario, load), cells in groups.items()
        for chain in _chains(plan.suite)
        if len(cells.keys() & set(chain)) > 1
    ]
    return tuple(_adjusted_wholes(falls))


def _chains(suite: Suite) -> Iterator[tuple[str, ...]]:
    """From what each begins with to each variant that is no baseline itself, two steps and more."""
    slugs = [variant.slug for variant in suite.variants]
    baselines = {suite.baseline_of(slug) for slug in slugs}
    for slug in slugs:
        chain = suite.chain_of(slug)
        if slug not in baselines and len(chain) > 2:
            yield chain


def _adjusted_wholes(falls: Sequence[Waterfall]) -> Iterator[Waterfall]:
    made = [found for fall in falls for found in (fall.whole.throughput, fall.whole.cpu) if found]
    servers = {found.cell_id: fall.whole.server for fall in falls for found in (fall.whole.cpu,) if found}
    judged = iter(
        with_verdicts(made, lambda one: Question(f"{one.metric.words} of whole chains", servers[one.cell_id]))
    )
    for fall in falls:
        throughput = next(judged) if fall.whole.throughput else None
        cpu = next(judged) if fall.whole.cpu else None
        yield fall.judged(throughput, cpu)


@dataclass(frozen=True)
class _Bearing:
    """The cells of one scenario under one load by slug, and the comparisons that were made of them."""

    scenario: str
    load: str
    cells: Mapping[str, JudgedCell]
    plan: Plan
    found: Mapping[tuple[str, str, Metric], Comparison]

    def waterfall(self, chain: tuple[str, ...]) -> Waterfall:
        base = self.cells.get(chain[0])
        return Waterfall(
            scenario=self.scenario,
            load=self.load,
            base=chain[0],
            base_throughput=_known(base, Metric.THROUGHPUT) if base and base.cell.load.saturates else None,
            base_cpu=_known(base, _CPU) if base else None,
            steps=tuple(self._layer(server, against) for against, server in pairwise(chain)),
            whole=self._layer(chain[-1], chain[0]),
        )

    def _layer(self, server: str, against: str) -> Layer:
        one, other = self.cells.get(server), self.cells.get(against)
        if one is None or other is None:
            return Layer(server=server, against=against, refused=self._why_missing(server if one is None else against))
        if one.cell.load != other.cell.load:
            return Layer(server=server, against=against, refused="the two had different loads")
        cpu = self._compared(one, other, _CPU)
        return Layer(
            server=server,
            against=against,
            throughput=self._compared(one, other, Metric.THROUGHPUT) if one.cell.load.saturates else None,
            cpu=cpu,
            cpu_ns=None if cpu.refused else _difference(one, other, cpu),
        )

    def _compared(self, one: JudgedCell, other: JudgedCell, metric: Metric) -> Comparison:
        found = self.found.get((one.id, other.id, metric))
        return found or compare_by_round(one, other, metric, self.plan.suite.threshold)

    def _why_missing(self, slug: str) -> str:
        cell = f"{slug}.{self.scenario}.{self.load}"
        reason = next((skipped.reason for skipped in self.plan.skipped if skipped.slug == cell), "")
        return f"{slug} was skipped: {reason}" if reason else f"{slug} is not in this run"


def _difference(one: JudgedCell, other: JudgedCell, cpu: Comparison) -> Estimate | None:
    """In CPU time per request, over the rounds in which both have a trial with it; None without a valid one.

    Of a duet it is what the ratio makes of the level, so that the two say one thing.
    """
    if cpu.duet is not None:
        level = _known(other, _CPU)
        return _of_ratio(cpu.ratio, level) if cpu.ratio and level else None
    mine, theirs = same_rounds(one.having(_CPU), other.having(_CPU))
    if not (one.valid and other.valid and mine):
        return None
    return paired_difference(sample_of(mine, _CPU), sample_of(theirs, _CPU), _CPU)


def _of_ratio(ratio: Estimate, level: Estimate) -> Estimate:
    """What a change by this ratio adds to the level. Zero is in its interval exactly if 1 is in that of the ratio."""
    ends: tuple[float, ...] = ()
    if None not in (bounds := (ratio.low, ratio.high, level.low, level.high)):
        low, high, least, most = (bound or 0.0 for bound in bounds)
        ends = tuple(at * (end - 1) for at in (least, most) for end in (low, high))
    return Estimate(
        value=level.value * (ratio.value - 1),
        low=min(ends, default=None),
        high=max(ends, default=None),
        unit=level.unit,
        n=min(ratio.n, level.n),
        method=_METHOD_OF_DUETS,
    )


def _known(one: JudgedCell, metric: Metric) -> Estimate | None:
    return one.estimate(metric) if one.valid and one.having(metric) else None
