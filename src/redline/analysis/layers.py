"""The cost of layers, if baselines have baselines of their own: chains as waterfalls. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from redline.analysis.compare import Question, compare_cells, metrics_written, same_rounds, with_verdicts
from redline.analysis.results import CellResult
from redline.model import Comparison, Estimate, Layer, Metric, Plan, Suite, Waterfall
from redline.stats import paired_difference, sample_of

_CPU = Metric.CPU_PER_REQUEST
_METHOD_OF_DUETS = "the ratio of duets times the level of trials alone, both intervals at their ends"


def waterfalls(
    results: Mapping[str, CellResult], plan: Plan, comparisons: Iterable[Comparison] = ()
) -> tuple[Waterfall, ...]:
    """Every chain of two or more steps by scenario and load, in the order of the run's cells, then of the suite.

    A step among `comparisons` is that comparison and is not judged twice. The whole chains in a metric are a family.
    The branches of a chain are chains of their own that begin with the common steps.
    """
    known = {(comparison.cell_id, comparison.baseline_id, comparison.metric): comparison for comparison in comparisons}
    groups: dict[tuple[str, str], dict[str, CellResult]] = {}
    for cell in results.values():
        if cell.cell.role == "subject":
            groups.setdefault((cell.cell.scenario.name, cell.cell.load.name), {})[cell.cell.variant.slug] = cell
    falls = [
        _Bearing(scenario, load, cells, plan, known).waterfall(chain)
        for (scenario, load), cells in groups.items()
        for chain in _chains(plan.suite)
        if len(cells.keys() & set(chain)) > 1
    ]
    return tuple(_adjusted_wholes(falls))


def _chains(suite: Suite) -> Iterator[tuple[str, ...]]:
    """Chains of at least two steps that end with a variant which is no baseline."""
    slugs = [variant.slug for variant in suite.variants]
    baselines = {suite.baseline_of(slug) for slug in slugs}
    for slug in slugs:
        chain = suite.chain_of(slug)
        if slug not in baselines and len(chain) > 2:
            yield chain


def _adjusted_wholes(falls: Sequence[Waterfall]) -> Iterator[Waterfall]:
    made = [whole for fall in falls for whole in (fall.whole.throughput, fall.whole.cpu) if whole]
    servers = {fall.whole.cpu.cell_id: fall.whole.server for fall in falls if fall.whole.cpu}

    def question_of(comparison: Comparison) -> Question:
        return Question(f"{comparison.metric.words} of whole chains", servers[comparison.cell_id])

    verdicts = iter(with_verdicts(made, question_of))
    for fall in falls:
        throughput = next(verdicts) if fall.whole.throughput else None
        cpu = next(verdicts) if fall.whole.cpu else None
        yield fall.with_whole(throughput, cpu)


@dataclass(frozen=True)
class _Bearing:
    """The cells of a scenario under a load by slug, and their comparisons."""

    scenario: str
    load: str
    cells: Mapping[str, CellResult]
    plan: Plan
    known: Mapping[tuple[str, str, Metric], Comparison]

    def waterfall(self, chain: tuple[str, ...]) -> Waterfall:
        base = self.cells.get(chain[0])
        return Waterfall(
            scenario=self.scenario,
            load=self.load,
            base=chain[0],
            base_throughput=base.level(Metric.THROUGHPUT) if base and base.cell.load.saturates else None,
            base_cpu=base.level(_CPU) if base else None,
            steps=tuple(self._layer(server, against) for against, server in pairwise(chain)),
            whole=self._layer(chain[-1], chain[0]),
        )

    def _layer(self, server: str, against: str) -> Layer:
        cell, other = self.cells.get(server), self.cells.get(against)
        if cell is None or other is None:
            return Layer(server=server, against=against, refused=self._why_missing(against if cell else server))
        if cell.cell.load != other.cell.load:
            return Layer(server=server, against=against, refused="the two had different loads")
        cpu = self._compared(cell, other, _CPU)
        return Layer(
            server=server,
            against=against,
            throughput=self._compared(cell, other, Metric.THROUGHPUT) if cell.cell.load.saturates else None,
            cpu=cpu,
            cpu_ns=None if cpu.refused else _difference(cell, other, cpu),
        )

    def _compared(self, cell: CellResult, other: CellResult, metric: Metric) -> Comparison:
        known = self.known.get((cell.id, other.id, metric))
        suite = self.plan.suite
        return known or compare_cells(cell, other, metric, suite.threshold, asked=metrics_written(suite))

    def _why_missing(self, slug: str) -> str:
        cell = f"{slug}.{self.scenario}.{self.load}"
        reason = next((skipped.reason for skipped in self.plan.skipped if skipped.slug == cell), "")
        return f"{slug} was skipped: {reason}" if reason else f"{slug} is not in this run"


def _difference(cell: CellResult, other: CellResult, cpu: Comparison) -> Estimate | None:
    """The difference in CPU time per request, over rounds with valid trials of both; None without any.

    In a duet it is the level times (ratio - 1), so that difference and ratio agree.
    """
    if cpu.duet is not None:
        level = other.level(_CPU)
        return _of_ratio(cpu.ratio, level) if cpu.ratio and level else None
    mine, theirs = same_rounds(cell.having(_CPU), other.having(_CPU))
    return paired_difference(sample_of(mine, _CPU), sample_of(theirs, _CPU), _CPU) if mine else None


def _of_ratio(ratio: Estimate, level: Estimate) -> Estimate:
    """The difference that a ratio makes to a level. Its interval contains 0 exactly if the ratio's contains 1."""
    ends: tuple[float, ...] = ()
    if ratio.interval and level.interval:
        ends = tuple(at * (end - 1) for at in level.interval for end in ratio.interval)
    return Estimate(
        value=level.value * (ratio.value - 1),
        low=min(ends, default=None),
        high=max(ends, default=None),
        unit=level.unit,
        n=min(ratio.n, level.n),
        method=_METHOD_OF_DUETS,
    )
