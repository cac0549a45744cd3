"""The answer of a report, in words: sentences made only from its verdicts, levels and limits."""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

from redline.document import format as fmt
from redline.document.blocks import Line, Look, Medium, Prose, Section, filled, line
from redline.findings.cell import USELESS
from redline.model import (
    CellReport,
    Comparison,
    Estimate,
    Grade,
    Metric,
    ObjectiveResult,
    Place,
    Ranking,
    Report,
    Verdict,
)
from redline.model.limits import CellLimit, LimitAnswer, LimitChange, LimitReport
from redline.model.run import SameBuilds
from redline.quantities import significant
from redline.report.by_request import cpu_lines
from redline.report.fastest import fastest_lines
from redline.report.limit_ratios import ratio_lines
from redline.report.main_effects import sentence
from redline.report.objectives import mark, objective_line
from redline.report.overall import headline_lines, study_lines
from redline.report.views import comparisons_by_cell, groups, invalid_reason, only_judged, tally
from redline.search.times import FEW_ERRORS
from redline.stats.trials import MESSAGE_QUANTILES

TITLE = "The answer, in words"
_MOST = 12
"""The most sentences. A larger report has the largest differences, and counts of its verdicts."""
_NAMED = 6
"""The most cells that are named as missing an objective."""
_LONGEST_S = 3600.0
"""The longest time that is worth forecasting."""
_MARGIN = 1.5
"""The margin on a forecast: a narrow decision takes half as long again, since the next interval may be wider."""

_FEW = 0.01
"""The share of failed requests below which something else explains a missed objective."""

_PERCENTILES = (Metric.P99, Metric.P95, Metric.P90, Metric.P75, Metric.P50)
_TIMES = (*_PERCENTILES, *MESSAGE_QUANTILES)
_SAID = (Metric.CPU_PER_REQUEST, Metric.THROUGHPUT, *_TIMES)
_WORDS = {
    Metric.CPU_PER_REQUEST: ("needs", "CPU per request", "more", "less"),
    Metric.THROUGHPUT: ("answers", "requests", "more", "fewer"),
    **{metric: ("has", metric.words, "higher", "lower") for metric in _TIMES},
}
"""The verb, the noun, and the words for a higher and a lower value; percentiles are higher or lower."""
_DECIDED = (Verdict.FASTER, Verdict.SLOWER)


class ComparedSentence(NamedTuple):
    """A sentence about a server and its baseline, in a scenario under a load.

    `judged` are the comparisons behind it; the others of `known` are described, or not compared.
    """

    cell: CellReport
    against: str
    known: tuple[Comparison, ...]
    judged: tuple[Comparison, ...]
    where: str
    sentence: Line

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """The comparisons with a verdict of faster or slower."""
        return tuple(comparison for comparison in self.judged if comparison.verdict in _DECIDED)


def run_answer(report: Report) -> Iterator[Section]:
    """The answer of a run: comparisons, or levels if nothing is compared."""
    said: Iterable[Line] = ()
    if (same := report.run.same) is not None:
        yield _same_section(same)
        return
    cpu = [*cpu_lines(report)]
    if not report.next_command:  # a screen compares nothing
        compared = any(comparison.verdict or _lacks_verdict(comparison) for comparison in report.comparisons)
        said = (*headline_lines(report), *fastest_lines(report), *_compared(report)) if compared else _levels(report)
    shown = cpu if len(cpu) <= _MOST else []  # the tables by request have them
    yield Section(
        TITLE, (Prose((*said, *shown, *_by_axis(report), *_objectives(report)), listed=True),), anchor="answer"
    )


def _same_section(same: SameBuilds) -> Section:
    """That two revisions build the same bytes, and what shows it."""
    told = line((same.text, "strong"), f": {same.evidence}")
    return Section(TITLE, (Prose((told,), listed=True),), anchor="answer")


def _by_axis(report: Report) -> Iterator[Line]:
    """Yield which axes matter to a server, in the metrics with verdicts."""
    several = len({(effect.scenario, effect.load) for effect in report.main_effects}) > 1
    for effect in report.main_effects:
        if text := sentence(effect.effects):
            where = f"{effect.scenario} · {effect.load}: " if several else ""
            yield line((where, "dim"), f"{effect.server}, {fmt.label(effect.metric)}: {text}")
    if report.next_command:
        yield line("In full, what matters: ", (report.next_command, "strong"))


def _objectives(report: Report) -> Iterator[Line]:
    """Yield objectives with the cells that miss them, and how many meet them; for a single cell the result."""
    results_by_text: dict[str, list[tuple[str, ObjectiveResult]]] = {}
    for cell in report.cells:
        for result in cell.objectives:
            results_by_text.setdefault(result.objective.text, []).append((cell.slug, result))
    for results in results_by_text.values():
        first = results[0][1]
        if len(results) == 1:
            yield objective_line(first)
            continue
        text = f"{first.objective.metric} {fmt.bound(first.objective)}"
        met = sum(result.met for _, result in results)
        if met == len(results):
            yield line(mark("met"), f"{text} is met by all {met} cells")
            continue
        missed, unknown = (_first_cells(results, state) for state in ("missed", "not known"))
        said = [f"{text} is not met by {missed}"] if missed else []
        said += [f"{'' if missed else text + ' is '}not known of {unknown}"] if unknown else []
        of_all = f"{met:,} of {len(results):,} cells meet it"
        yield line(mark("missed" if missed else "not known"), "; ".join((*said, of_all)))


def _first_cells(results: Sequence[tuple[str, ObjectiveResult]], state: str) -> str:
    """Name the first cells with this result, with number or reason; empty without such cells."""
    texts = [f"{slug} ({result.reason or fmt.actual(result)})" for slug, result in results if result.state == state]
    more = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return f"{', '.join(texts[:_NAMED])}{more}"


def limit_answer(report: LimitReport) -> Iterator[Section]:
    """The rates, or the users, that servers sustain, and how they compare; empty if no search came to an answer."""
    if report.same is not None:
        yield _same_section(report.same)
        return
    several = len({cell.scenario for cell in report.cells}) > 1
    limits = (
        line((f"{cell.scenario}: " if several else "", "dim"), limit_sentence(cell, answer))
        for cell in report.cells
        for answer in cell.limits
    )
    cut = tuple(_cut_short(report))
    if (lines := (*limits, *ratio_lines(report))) or cut:
        yield Section(TITLE, tuple(filled(Prose(cut, on=Medium.PAGE), Prose(lines, listed=True))), anchor="answer")


def _cut_short(report: LimitReport) -> Iterator[Line]:
    """Name the searches that did not come to their end: the page says so above what was known by then."""
    for end, said in (("interrupted", "! Interrupted: "), ("broken", "! Broken off: ")):
        if servers := [cell.server for cell in report.cells if cell.ended == end]:
            names = ", ".join(dict.fromkeys(servers))
            yield line((said, Grade.WARN), f"the search of {names}; this is what was known by then.")


def limit_sentence(cell: CellLimit, answer: LimitAnswer) -> str:
    """Say what a server sustains, what speaks against it, and why its requests failed if it sustains nothing."""
    late = (f"the time was over before {cell.left_out}",) if cell.left_out else ()
    changed = answer.changed
    if changed is not None and changed.answers:  # the first doubt says the same
        return "; ".join((_two_answers(cell.server, answer, changed), *answer.doubts[1:], *late))
    return "; ".join((_limit(cell.server, answer), *answer.doubts, *late)) + _failures(cell, answer)


def _two_answers(server: str, answer: LimitAnswer, changed: LimitChange) -> str:
    """`A misses p99 < 50ms from 90/s on since 20 s into the search; before that it met it up to 444/s`."""
    met_before, missed_before, met_since, missed_since = (
        answer.said(changed.at(which)) for which in ("met_before", "missed_before", "met_since", "missed_since")
    )
    if changed.slower:
        said = f"{server} misses {answer.name} from {missed_since} on since {changed.when}"
        return f"{said}; before that it met it up to {met_before}"
    said = f"{server} meets {answer.name} up to {met_since} since {changed.when}"
    return f"{said}; before that it missed it from {missed_before} on"


def _failures(cell: CellLimit, answer: LimitAnswer) -> str:
    """Say why requests failed if a server met nothing; empty if a rate was met, or hardly any request failed."""
    if answer.passed is not None:
        return ""
    failing = [probe for probe in cell.probes if probe.errors > _FEW * probe.offered_per_s * probe.seconds]
    lowest = min(failing, key=lambda probe: probe.tried, default=None)
    texts = "; ".join(failure.text for failure in lowest.failures) if lowest else ""
    return f"; requests failed, first {texts}" if texts else ""


def _limit(server: str, answer: LimitAnswer) -> str:
    """`rust.hyper meets p99 < 200 ms up to 1,720/s and misses it from 1,817/s on (±2.7%)`."""
    low, high, what = answer.passed, answer.failed, answer.varied
    missed = answer.said(high)
    # A probe that met or missed it is never denied: the doubts that follow name it.
    nowhere = f"no {what} is known to meet it"
    if answer.met_at is not None:
        nowhere = f"up to which {what} it meets it is not known"
    if low is None and high is None:
        is_tried = answer.met_at is not None or answer.missed_at is not None
        said = f"where it stops to meet {answer.name} is not known"
        return f"{server}: {said if is_tried else f'no {what} is known to meet {answer.name}, and none to miss it'}"
    if low is None and answer.met_at is None and answer.reason.startswith("even "):
        lowest = answer.said(answer.missed_at or high)
        return f"{server} misses {answer.name} at every {what} that was tried, down to {lowest}{_first_to_fail(answer)}"
    if low is None:
        return f"{server} misses {answer.name} from {missed} on; {nowhere}{_first_to_fail(answer)}"
    met = f"{server} meets {answer.name} up to {answer.said(low)}"
    if high is None:
        is_missed = answer.missed_at is not None
        open_end = f"from which {what} on it misses it is not known" if is_missed else f"no {what} is known to miss it"
        return f"{met}; {open_end}"
    goal = "" if answer.decided else ", wider than the goal"
    wide = fmt.percent((high - low) / (high + low))
    return f"{met} and misses it from {missed} on (±{wide}{goal}){_first_to_fail(answer)}"


def _first_to_fail(answer: LimitAnswer) -> str:
    """Name the condition that fails first, if several were given or another than the given one does."""
    given = [text for text in answer.conditions if text != FEW_ERRORS and not text.startswith("never ")]
    if not answer.binds_alone or given == [answer.binding]:
        return ""
    return f"; of its conditions, {answer.binding} fails first"


def _compared(report: Report) -> Iterator[Line]:
    """Yield a sentence per pair with a difference; then pairs that are alike, undecided, or without verdict."""
    decided: list[tuple[float, Line]] = []
    rest: list[Line] = []
    for said in sentences(report):
        text = (*line((said.where, "dim")), *said.sentence)
        if said.differing:
            decided.append((max(map(_size, said.differing)), text))
        else:
            rest.append(text)
    if len(decided) + len(rest) > _MOST:
        verdicts = tally(report)
        counts = ", ".join(f"{number:,} {verdict.words}" for verdict, number in verdicts.items())
        follow = "These differ:" if decided else "No difference is significant."
        follow = "The largest differences:" if len(decided) > _MOST else follow
        over_all = study_lines(report, _MOST) if len(decided) > _MOST and not [*headline_lines(report)] else ()
        counted = f"{fmt.count(sum(verdicts.values()), 'verdict')}: {counts}."
        if over_all:
            announced, *over_pairs = over_all
            yield (*line(f"{counted} "), *announced)
            yield from over_pairs
            return
        yield line(f"{counted} {follow}")
        decided, rest = sorted(decided, key=lambda sized: -sized[0])[:_MOST], []
    yield from (text for _, text in decided)
    yield from rest


def sentences(report: Report) -> Iterator[ComparedSentence]:
    """Yield a sentence for every pair of servers that the report compares, in the order of its cells."""
    names = {cell.cell_id: cell.server for cell in report.cells}
    compared = comparisons_by_cell(report)
    alone = len({comparison.cell_id for comparison in report.comparisons}) == 1  # else the table has the controls
    for group in groups(report):
        where = group.where(report.cells)
        for cell in group.cells:
            by_metric = compared.get(cell.cell_id, {})
            known = [by_metric[metric] for metric in _SAID if metric in by_metric]
            if cell.role == "ceiling" or not known:
                continue
            against = names.get(known[0].baseline_id, known[0].baseline_id)
            judged = [comparison for comparison in known if comparison.verdict or _lacks_verdict(comparison)]
            aside = (_control(against, judged) if alone else "") + _more_time(judged, report.run.seconds)
            rest: tuple[str, Look] = _described(known, against), "dim"
            if any(comparison.verdict in _DECIDED for comparison in judged):
                sentence_ = line(*_sentence(cell.server, against, judged), aside, rest)
            elif judged:
                sentence_ = line(f"{cell.server} and {against}: {_undecided(judged)}{aside}", rest)
            else:
                first = next((comparison for comparison in known if comparison.primary), known[0])
                are = "are not compared" if first.ratio is None else "have no verdict"
                sentence_ = line(f"{cell.server} and {against} {are}: {first.why_no_verdict}")
            yield ComparedSentence(cell, against, tuple(known), tuple(judged), where, sentence_)


def _described(comparisons: Sequence[Comparison], against: str) -> str:
    """`; no verdict on throughput, as only CPU per request is judged: it answers 4.9% fewer requests [4.5, 5.3], …`.

    The rate in a duet without a verdict, if its interval excludes 1, with its own control; and the slowest requests, if
    these are slower or faster by more than the rate explains.
    """
    in_duet = {
        comparison.metric: comparison for comparison in comparisons if comparison.duet and not comparison.primary
    }
    rate = in_duet.get(Metric.THROUGHPUT)
    shown = [rate] if rate and rate.differs else []
    tails = (in_duet.get(metric) for metric in _PERCENTILES)
    shown += [tail for tail in tails if tail and rate and _is_beyond(tail, rate)][:1]
    only = only_judged(comparisons)
    reasons = (f", as {only}" if only else "", *[""] * len(shown))
    return "".join(
        f"; no verdict on {fmt.label(of.metric)}{reason}: it {difference(of)}{own_control(of, against)}"
        for of, reason in zip(shown, reasons, strict=False)
    )


def _is_beyond(tail: Comparison, rate: Comparison) -> bool:
    """Whether a percentile differs by more than the rate explains: users who wait longer ask less (Little's law).

    It is the first of several that is shown, so it has to differ by twice its interval.
    """
    if tail.ratio is None or rate.ratio is None:
        return False
    ours, follows = tail.ratio.log_interval, rate.ratio.log_interval
    if ours is None or follows is None:
        return False
    half = (ours[1] - ours[0]) / 2
    return ours[0] - half > max(-follows[0], 0.0) or ours[1] + half < min(-follows[1], 0.0)


def own_control(comparison: Comparison, baseline: str) -> str:
    """`, and A against itself 0.1% [-0.5, 0.7]`: what no difference looks like in this metric; empty if not known."""
    control = comparison.duet.control if comparison.duet else None
    return f", and {baseline} against itself {fmt.unsigned_bounds(control)}" if control else ""


def _control(baseline: str, judged: Sequence[Comparison]) -> str:
    """`; A against itself: 0.1% [-0.5, 0.7]`: the control without any difference, if known."""
    control = next((comparison.duet.control for comparison in judged if comparison.duet), None)
    return "" if control is None else f"; {baseline} against itself: {fmt.unsigned_bounds(control)}"


def _more_time(judged: Sequence[Comparison], seconds: float) -> str:
    """`; about 7 min in place of 2 min would decide it, if the ratio stays`: advice for an undecided duet.

    More time does not help servers that were not warm, and a running server has a single start.
    """
    factors = [
        _factor(comparison, comparison.ratio, comparison.resolution)
        for comparison in judged
        if comparison.verdict is Verdict.INCONCLUSIVE
        if comparison.duet and not comparison.duet.unsettled and not comparison.duet.attached
        if comparison.ratio and comparison.ratio.value > 0 and comparison.resolution is not None
    ]
    if not factors or not seconds:
        return ""
    needed = max(factors) * seconds
    if needed > _LONGEST_S:
        return "; to decide it, if the ratio stays, would take more than an hour"
    return f"; about {_round_up(needed)} in place of {_round_up(seconds)} would decide it, if the ratio stays"


def _round_up(seconds: float) -> str:
    """`40 s`, `7 min`."""
    return f"{math.ceil(seconds / 10) * 10} s" if seconds <= 90 else f"{math.ceil(seconds / 60)} min"


def _factor(comparison: Comparison, ratio: Estimate, resolution: float) -> float:
    """The factor of time in which a measurement would decide, if the ratio stays; `_MARGIN` at least.

    An interval becomes narrower by the square root of the time. It decides once it excludes 1, or is within the
    threshold, whichever comes first. A comparison that is held back among many has to exclude 1 by more.
    """
    read, threshold, half = abs(math.log(ratio.value)), math.log1p(comparison.threshold), math.log1p(resolution)
    wanted = max(read, threshold - read)
    if comparison.held_back and comparison.p and comparison.p_adjusted:
        needed = (1 - ratio.confidence) * comparison.p / comparison.p_adjusted
        half, wanted = (NormalDist().inv_cdf(1 - p / 2) for p in (needed, comparison.p))
    return max(_MARGIN, (half / wanted) ** 2)


def _sentence(server: str, against: str, judged: Sequence[Comparison]) -> Iterator[str | tuple[str, Look]]:
    """`axum needs 24% more CPU per request than hyper [20, 28], answers 9% fewer requests [7, 11]; its p99 …`."""
    differing = [comparison for comparison in judged if comparison.verdict in _DECIDED]
    yield f"{server} "
    for at, comparison in enumerate(differing):
        if at:
            yield " and " if at == len(differing) - 1 else ", "
        yield difference(comparison, "" if at else against), "strong"
    if others := [comparison for comparison in judged if comparison not in differing]:
        yield f"; its {_undecided(others)}"


def _undecided(comparisons: Sequence[Comparison]) -> str:
    """`throughput is the same within 2%, p50 (resolution 9.1%) and p99 (resolution 28%) cannot be distinguished`.

    A comparison that many others hold back has its size: `CPU per request reads +26.5% [+11.9, +43.0], …`.
    """
    texts: list[str] = []
    known: list[str] = []
    unsettled: list[str] = []
    unknown: list[str] = []
    for comparison in comparisons:
        name = fmt.label(comparison.metric)
        change = fmt.with_bounds(comparison.ratio) if comparison.ratio else ""
        if comparison.verdict is Verdict.EQUIVALENT:
            texts.append(f"{name} is the same within {fmt.percent(comparison.threshold)}")
        elif _lacks_verdict(comparison):
            known.append(f"{name} differs, {change}, but no verdict: {comparison.why_no_verdict}")
        elif comparison.verdict is Verdict.INCONCLUSIVE and comparison.duet and comparison.duet.unsettled:
            unsettled.append(f"{name} has no verdict, {change}: {comparison.why_no_verdict}")
        elif comparison.held_back:
            known.append(f"{name} reads {change}, which may be chance {fmt.held_back(comparison)}".rstrip())
        elif not comparison.differs:
            unknown.append(f"{name} ({_resolution(comparison.resolution)})")
    texts += [*known, *unsettled]
    if unknown:
        texts.append(f"{' and '.join(filter(None, (', '.join(unknown[:-1]), unknown[-1])))} cannot be distinguished")
    return ", ".join(texts)


def _lacks_verdict(comparison: Comparison) -> bool:
    """Whether there is no verdict where one is wanted, though the interval excludes 1, as with cold servers."""
    return comparison.primary and comparison.verdict is None and comparison.differs


def _resolution(resolution: float | None) -> str:
    if resolution is None:
        return "resolution not known"
    return f"resolution beyond {_percent(USELESS)}" if resolution > USELESS else f"resolution {_percent(resolution)}"


def difference(comparison: Comparison, against: str = "") -> str:
    """`needs 24% more CPU per request than hyper [20, 28]`, or `answers 1.6 times fewer requests [1.4, 1.9]`."""
    assert comparison.ratio is not None
    verb, noun, more, less = _WORDS.get(comparison.metric, ("has", fmt.label(comparison.metric), "higher", "lower"))
    ratio, low, high = comparison.ratio.value, comparison.ratio.low, comparison.ratio.high
    word, than = more if ratio > 1 else less, f" than {against}" if against else ""
    known = [end for end in (low, high) if end is not None]
    if (factor := fmt.factor_in_times(ratio)) is not None:
        size = f"{significant(factor, 2)} times"
        ends = [significant(end, 2) for end in sorted(end if ratio > 1 else 1 / end for end in known if end > 0)]
    else:
        places = int(abs(ratio - 1) < 0.1)
        if len(known) > 1 and not comparison.ratio.says_nothing:
            places = fmt.end_places(known[0], known[1], places)
        size = f"{abs(ratio - 1) * 100:.{places}f}%"
        sizes = sorted((end - 1) * (1 if ratio > 1 else -1) for end in known)
        ends = [fmt.signed(end * 100, places).removeprefix("+") for end in sizes]
    if comparison.ratio.says_nothing:
        ends = [fmt.NOT_KNOWN]
    bounds = f" [{', '.join(ends)}]" if ends else ""
    about = f"{bounds}{fmt.immaterial(comparison)}"
    if factor is not None and ratio > 1:
        return f"{verb} {size} the {noun}{f' of {against}' if against else ''}{about}"
    if comparison.metric in _TIMES:
        return f"{verb} a {noun} {size} {word}{than}{about}"
    return f"{verb} {size} {word} {noun}{than}{about}"


def _percent(share: float) -> str:
    return f"{share * 100:.{int(share < 0.1)}f}%"


def _size(comparison: Comparison) -> float:
    return abs(math.log(comparison.ratio.value)) if comparison.ratio and comparison.ratio.value > 0 else 0.0


def _levels(report: Report) -> list[Line]:
    """Return the levels of groups, best first; for a large report how many there are to read."""
    lines: list[Line] = []
    cells = {cell.cell_id: cell for cell in report.cells}
    for group in groups(report):
        where: tuple[str, Look] = group.where(report.cells), "dim"
        here = (
            ranking for ranking in report.rankings if (ranking.scenario, ranking.load) == (group.scenario, group.load)
        )
        rankings = [ranking for ranking in here if len(ranking.places) > 1]
        lines += [line(where, _ranking(ranking, cells)) for ranking in rankings]
        for cell in group.cells:
            if cell.role == "subject" and not cell.shows_numbers:
                lines.append(line(where, (f"{cell.server} has no valid result", "strong"), f": {invalid_reason(cell)}"))
            elif cell.role == "subject" and (not rankings or not cell.valid):
                lines.append(line(where, level(cell)))
    if len(lines) > _MOST:
        return [*lines[:_MOST], line(f"{len(lines) - _MOST:,} more stand in the results.")]
    return lines


def _ranking(ranking: Ranking, cells: dict[str, CellReport]) -> str:
    """`by throughput 1. hyper 96.0 k/s ±0.7%, 2. axum 89.7 k/s ±0.7%`."""
    setting = f" ({ranking.setting})" if ranking.setting else ""
    places = (
        f"{place.rank}. {cells[place.cell_id].server} {_place(place)}"
        + (f" ({fmt.with_bounds(place.ratio)}{' in duets' if place.in_duets else ''})" if place.ratio else "")
        for place in ranking.places
    )
    others = ", ".join(cells[cell_id].server for cell_id in ranking.without if cell_id in cells)
    without = f"; not ranked: {others}" if others else ""
    return f"by {fmt.label(ranking.metric)}{setting} {', '.join(places)}{without}"


def _place(place: Place) -> str:
    if place.bound:
        return place.bound.words
    return fmt.with_spread(place.estimate) if place.estimate else fmt.NOT_KNOWN


def level(cell: CellReport) -> str:
    """`hyper answers 96.0 k/s ±0.7%, p99 1.38 ms ±2.5%, CPU per request 17.7 µs ±0.9%`.

    Of conversations: `hyper messages 16.7 k/s, one way p50 7.70 µs, p99 23.1 µs, CPU per request 29.1 ms ±1.2%`.
    """
    known = {metric: fmt.with_spread(estimate) for metric, estimate in cell.known.items()}
    known |= {metric: bound.words for metric, bound in cell.bounds.items()}
    of_messages = _messages(cell)
    metrics = (Metric.CPU_PER_REQUEST,) if of_messages else (Metric.THROUGHPUT, Metric.P99, Metric.CPU_PER_REQUEST)
    parts = [f"messages {of_messages}"] if of_messages else []
    parts += [
        f"{'answers' if metric is Metric.THROUGHPUT else fmt.label(metric)} {known[metric]}"
        for metric in metrics
        if metric in known
    ]
    alone = all(estimate.n == 1 for estimate in cell.known.values())
    return f"{cell.server} {', '.join(parts)}{' (one trial: no interval)' if alone and parts else ''}"


def _messages(cell: CellReport) -> str:
    if cell.streams is None:
        return ""
    from redline.report.streams import messages_text  # noqa: PLC0415 - few servers have streams

    return messages_text(cell.streams)
