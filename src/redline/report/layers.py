"""What each layer costs, where baselines have baselines of their own: chains as waterfalls. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from redline.model import Comparison, Estimate, Layer, Metric, Plan, Suite, Waterfall
from redline.report.compare import compare_by_round
from redline.report.judged import JudgedCell
from redline.report.precision import telling_metric
from redline.stats import estimate, sample_of, tells
from redline.stats.difference import paired_difference

_CPU = Metric.CPU_PER_REQUEST
_By = Mapping[tuple[str, str, str], JudgedCell]
_Told = Mapping[tuple[str, str, Metric], Comparison]


def waterfalls(
    judged: Mapping[str, JudgedCell], plan: Plan, comparisons: Iterable[Comparison] = ()
) -> tuple[Waterfall, ...]:
    """Every chain of two or more steps by scenario and load, in the order of the run's cells, then of the suite.

    A step that the report compares anyhow is that very comparison, so that no verdict stands there twice. Of a chain
    that branches each branch is a chain of its own, which begins with the common steps.
    """
    subjects = [one for one in judged.values() if one.cell.role == "subject"]
    by = {(one.cell.variant.slug, one.cell.scenario.name, one.cell.load.name): one for one in subjects}
    told = {(found.cell_id, found.baseline_id, found.metric): found for found in comparisons}
    places = dict.fromkeys((one.cell.scenario.name, one.cell.load.name) for one in subjects)
    made = []
    for scenario, load in places:
        for chain in _chains(plan.suite):
            if sum((slug, scenario, load) in by for slug in chain) > 1:
                made.append(_waterfall(chain, scenario, load, by, told, plan))
    return tuple(made)


def _chains(suite: Suite) -> Iterator[tuple[str, ...]]:
    """From what each begins with to each variant that is no baseline itself, two steps and more."""
    slugs = [variant.slug for variant in suite.variants]
    baselines = {suite.baseline_of(slug) for slug in slugs}
    for slug in slugs:
        chain = suite.chain_of(slug)
        if slug not in baselines and len(chain) > 2:
            yield chain


def _waterfall(chain: tuple[str, ...], scenario: str, load: str, by: _By, told: _Told, plan: Plan) -> Waterfall:
    def layer(server: str, against: str) -> Layer:
        one, other = by.get((server, scenario, load)), by.get((against, scenario, load))
        if one is None or other is None:
            missing = server if one is None else against
            return Layer(server=server, against=against, refused=_why_missing(missing, scenario, load, plan))
        return _layer(one, other, told, plan.suite.threshold)

    base = by.get((chain[0], scenario, load))
    return Waterfall(
        scenario=scenario,
        load=load,
        base=chain[0],
        base_throughput=_known(base, Metric.THROUGHPUT) if base and _saturates(base) else None,
        base_cpu=_known(base, _CPU) if base else None,
        steps=tuple(layer(server, against) for against, server in zip(chain, chain[1:], strict=False)),
        whole=layer(chain[-1], chain[0]),
    )


def _layer(one: JudgedCell, other: JudgedCell, told: _Told, threshold: float) -> Layer:
    def compared(metric: Metric) -> Comparison:
        found = told.get((one.cell.id, other.cell.id, metric))
        return found or compare_by_round(one, other, metric, threshold)

    server, against = one.cell.variant.slug, other.cell.variant.slug
    if one.cell.load != other.cell.load:
        return Layer(server=server, against=against, refused="the two did not bear the same load")
    cpu = compared(_CPU)
    return Layer(
        server=server,
        against=against,
        throughput=compared(Metric.THROUGHPUT) if _saturates(one) else None,
        cpu=cpu,
        cpu_ns=None if cpu.refused else _difference(one, other),
    )


def _difference(one: JudgedCell, other: JudgedCell) -> Estimate:
    """In CPU time per request, over the rounds in which both have a trial that tells it."""
    by_round = {recording.round: recording for recording in other.used if tells(recording, _CPU)}
    pairs = [(mine, by_round[mine.round]) for mine in one.used if tells(mine, _CPU) and mine.round in by_round]
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return paired_difference(sample_of(mine, _CPU), sample_of(theirs, _CPU), _CPU)


def _known(one: JudgedCell, metric: Metric) -> Estimate | None:
    used = [recording for recording in one.used if tells(recording, metric)]
    return estimate(sample_of(used, metric), metric) if one.valid and used else None


def _saturates(one: JudgedCell) -> bool:
    """Whether its users ask again at once, so that its throughput is the server's own."""
    return telling_metric(one.cell.load) is Metric.THROUGHPUT


def _why_missing(slug: str, scenario: str, load: str, plan: Plan) -> str:
    reason = {skipped.slug: skipped.reason for skipped in plan.skipped}.get(f"{slug}.{scenario}.{load}", "")
    return f"{slug} was skipped: {reason}" if reason else f"{slug} is not in this run"
