"""Runs of a suite side by side: which comparisons held on another machine or day. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from redline.analysis.comparing import lacks
from redline.errors import UsageError
from redline.model import Comparison, Estimate, Metric, Verdict
from redline.model.claim import Claim, ClaimResult
from redline.model.limits import AnyReport, LimitReport
from redline.model.side_by_side import AnswerRow, ClaimRow, Outcome, ShownAnswer, ShownRun, SideBySide
from redline.quantities import ratio as ratio_text
from redline.stats import ALPHA, holm_adjust
from redline.wording import as_argument

_Z = 1.959964
"""Standard errors from the middle to the end of an interval, at least: those of few trials have more."""
_MOST = 26
"""The most runs whose ratios fit beside each other."""
_NO_CELL = "not measured"
_UNDECIDED = (None, Verdict.INCONCLUSIVE)
"""The interval of a decided comparison allows for servers that were not warm."""


@dataclass(frozen=True)
class NamedReport:
    """A report, where it is from, and whether it was judged by this version."""

    source: str
    report: AnyReport
    judged_now: bool


@dataclass(frozen=True)
class _ComparisonKey:
    cell: str
    baseline: str
    measure: str


@dataclass(frozen=True)
class _OneAnswer:
    """A run's answer, the ids of the compared cells, the order of the measure, and whether it is judged."""

    answer: ShownAnswer
    ids: tuple[str, str]
    order: int
    primary: bool


def side_by_side(named: Sequence[NamedReport], version: str) -> SideBySide:
    """Put runs side by side; `version` is this Redline's.

    Raises UsageError for a run that is there twice, and for runs without a common comparison.
    """
    if len(named) > _MOST:
        raise UsageError(f"{len(named)} runs are too many to show side by side", hint=f"name {_MOST} at most")
    runs = tuple(_shown_run(f"run {number}", one) for number, one in enumerate(named, 1))
    _check_distinct(runs)
    said = [_answers(one.report) for one in named]
    _check_common(runs, said)
    keys = sorted({key: None for own in said for key in own}, key=_TableOrder(said))
    rows = _judged([_row(key, [own.get(key) for own in said]) for key in keys], runs)
    return SideBySide(
        redline=version,
        runs=runs,
        rows=rows,
        claims=_claims([one.report for one in named]),
        notices=tuple(_notices(named, runs, said, version)),
    )


def _claims(reports: Sequence[AnyReport]) -> tuple[ClaimRow, ...]:
    """A row for every claim, in the order of the first run that has it."""
    by_run: list[dict[Claim, ClaimResult]] = [
        {} if isinstance(report, LimitReport) else {result.claim: result for result in report.claims}
        for report in reports
    ]
    claims = dict.fromkeys(claim for own in by_run for claim in own)
    return tuple(ClaimRow(claim=claim, results=tuple(own.get(claim) for own in by_run)) for claim in claims)


def _shown_run(label: str, named: NamedReport) -> ShownRun:
    report = named.report
    about = report if isinstance(report, LimitReport) else report.run
    machine = report.environment
    return ShownRun(
        label=label,
        source=named.source,
        name=about.suite if isinstance(about, LimitReport) else about.name,
        suite=about.suite,
        hostname=machine.hostname,
        cpu_model=machine.cpu_model,
        cores=machine.cores,
        started_unix_ns=about.started_unix_ns,
        redline=machine.redline,
        judged_now=named.judged_now,
    )


def _check_distinct(runs: Sequence[ShownRun]) -> None:
    for first, second in combinations(runs, 2):
        if (first.started_unix_ns, first.hostname, first.name) == (
            second.started_unix_ns,
            second.hostname,
            second.name,
        ):
            alone = f"redline report {as_argument(first.source)}"
            raise UsageError(
                f"{first.source} and {second.source} are the same run",
                hint=f"name runs of two machines or two days; this one alone: {alone}",
            )


def _check_common(runs: Sequence[ShownRun], said: Sequence[dict[_ComparisonKey, _OneAnswer]]) -> None:
    without = [run.source for run, own in zip(runs, said, strict=True) if not own]
    if without:
        raise UsageError(
            f"{', '.join(without)} compares nothing: no server in it has a baseline",
            hint="runs are shown side by side by what they compare: name runs of a suite with a baseline, or of ab",
        )
    if not any(first.keys() & second.keys() for first, second in combinations(said, 2)):
        raise UsageError(
            f"{', '.join(run.source for run in runs)} have no comparison in common",
            hint="comparisons match by the names of servers, scenario and load: name runs of the same suite",
        )


def _answers(report: AnyReport) -> dict[_ComparisonKey, _OneAnswer]:
    """What a report compares, by the names that runs on other machines have too."""
    if isinstance(report, LimitReport):
        return {
            _ComparisonKey(own.slug, own.baseline, f"limit {own.objective}".rstrip()): _OneAnswer(
                ShownAnswer(ratio=own.ratio, verdict=own.verdict, matters=own.matters, missing=_without(own.ratio)),
                ("", ""),
                0,
                primary=True,
            )
            for own in report.comparisons
        }
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    order = {metric: place for place, metric in enumerate(Metric)}
    return {
        _ComparisonKey(slugs[own.cell_id], slugs[own.baseline_id], own.metric.words): _OneAnswer(
            _answer(own), (own.cell_id, own.baseline_id), order[own.metric], own.primary
        )
        for own in report.comparisons
        if own.says_something and own.cell_id in slugs and own.baseline_id in slugs
    }


def _without(ratio: Estimate | None) -> str:
    return "" if ratio else "a limit is not known"


def _answer(own: Comparison) -> ShownAnswer:
    return ShownAnswer(
        ratio=own.ratio,
        verdict=own.verdict,
        matters=own.matters,
        missing="" if own.ratio else own.refused or "not known",
        unsettled=own.duet.unsettled if own.duet and own.ratio and own.verdict in _UNDECIDED else "",
    )


class _TableOrder:
    """Sorts comparisons as the first run that has them does, the primary measures of a cell first."""

    def __init__(self, said: Sequence[dict[_ComparisonKey, _OneAnswer]]) -> None:
        self._known: dict[_ComparisonKey, _OneAnswer] = {}
        for own in said:
            for key, one in own.items():
                self._known.setdefault(key, one)
        self._primary = {key for own in said for key, one in own.items() if one.primary}
        self._cells: dict[tuple[str, str], int] = {}
        for key in self._known:
            self._cells.setdefault((key.cell, key.baseline), len(self._cells))

    def __call__(self, key: _ComparisonKey) -> tuple[int, bool, int]:
        return self._cells[key.cell, key.baseline], key not in self._primary, self._known[key].order


def _row(key: _ComparisonKey, own: Sequence[_OneAnswer | None]) -> AnswerRow:
    """The row before it is judged."""
    return AnswerRow(
        cell=key.cell,
        baseline=key.baseline,
        measure=key.measure,
        primary=any(one.primary for one in own if one),
        answers=tuple(one.answer if one else ShownAnswer(ratio=None, missing=_NO_CELL) for one in own),
        outcome="only one",
        sentence="",
    )


def _judged(rows: Sequence[AnswerRow], runs: Sequence[ShownRun]) -> tuple[AnswerRow, ...]:
    """The rows with their outcomes. Primary measures are a family of tests, and the others are another."""
    differences = [_difference(row) for row in rows]
    adjusted: dict[int, float] = {}
    for primary in (True, False):
        ps = {
            place: found.p
            for place, (row, found) in enumerate(zip(rows, differences, strict=True))
            if row.primary is primary and found is not None
        }
        adjusted |= zip(ps, holm_adjust([*ps.values()]), strict=True)
    judged = []
    for place, (row, difference) in enumerate(zip(rows, differences, strict=True)):
        outcome, sentence = _outcome(row, runs, difference, adjusted.get(place, 1.0))
        judged.append(row.with_outcome(outcome, sentence, adjusted.get(place)))
    return tuple(judged)


@dataclass(frozen=True)
class _FurthestPair:
    """The two runs whose ratios are least likely the same, and how likely that is, for all pairs of runs."""

    low: int
    high: int
    p: float


def _difference(row: AnswerRow) -> _FurthestPair | None:
    """None unless two runs have ratios with intervals."""
    known = [
        (place, answer.ratio) for place, answer in enumerate(row.answers) if answer.ratio and answer.ratio.log_interval
    ]
    pairs = [
        (first, second) if first[1].value <= second[1].value else (second, first)
        for first, second in combinations(known, 2)
    ]
    if not pairs:
        return None
    found = [_FurthestPair(low[0], high[0], min(1.0, _p(low[1], high[1]) * len(pairs))) for low, high in pairs]
    return min(found, key=lambda difference: difference.p)


def _p(low: Estimate, high: Estimate) -> float:
    """The two-sided p-value of ratios that are the same, from the halves of the intervals that face each other."""
    lower, upper = low.log_interval, high.log_interval
    assert lower is not None
    assert upper is not None
    apart = math.log(high.value) - math.log(low.value)
    error = math.hypot(lower[1] - math.log(low.value), math.log(high.value) - upper[0]) / _Z
    if error <= 0:
        return 1.0 if apart <= 0 else 0.0
    return math.erfc(apart / error / math.sqrt(2))


def _outcome(
    row: AnswerRow, runs: Sequence[ShownRun], difference: _FurthestPair | None, p_adjusted: float
) -> tuple[Outcome, str]:
    labels = [run.label for run in runs]
    by_label = [*zip(labels, row.answers, strict=True)]
    known = [(label, answer) for label, answer in by_label if answer.ratio]
    without = "".join(f"; {label}: {answer.missing}" for label, answer in by_label if not answer.ratio)
    if len(known) < 2:
        return "only one", (f"only {known[0][0]} knows" if known else "no run knows") + without
    words = [_word(row, answer) for _, answer in known]
    says = ", ".join(f"{label} {word}" for (label, _), word in zip(known, words, strict=True)) + without
    why = _why_open(known, words, difference, p_adjusted)
    if why:
        return "open", f"{why}; {says}"
    if difference is not None and p_adjusted < ALPHA:
        return "differs", f"differs surely: {_apart(row, labels, difference)}; {says}"
    return "held", f"held: {words[0]} on {'both' if len(known) == 2 else 'all'}{without}"


def _why_open(
    known: Sequence[tuple[str, ShownAnswer]], words: Sequence[str], difference: _FurthestPair | None, p_adjusted: float
) -> str:
    """Why neither is sure: that it held, or that it differs; empty if one is."""
    bare = [label for label, answer in known if answer.ratio and not answer.ratio.log_interval]
    unsettled = [label for label, answer in known if answer.unsettled]
    differs = difference is not None and p_adjusted < ALPHA
    reasons = (
        (bare and not differs, f"not known: no interval in {', '.join(bare)}"),
        (unsettled, f"not known: servers were not warm in {', '.join(unsettled)}"),
        (differs, ""),
        (len(set(words)) > 1, "not sure: the ratios may be the same"),
        (words[0] in _NOT_KNOWN, "not known on any"),
        (
            not _overlap([answer for _, answer in known]),
            "not sure: the intervals do not overlap, but of so many rows one may show that by chance",
        ),
    )
    return next((reason for holds, reason in reasons if holds), "")


_UNCLEAR, _NO_VERDICT = "not clear", "no verdict"
_NOT_KNOWN = {Verdict.INCONCLUSIVE.value, _UNCLEAR, _NO_VERDICT}


def _word(row: AnswerRow, answer: ShownAnswer) -> str:
    """The verdict; of a measure without one, on which side of 1 its interval lies."""
    if answer.verdict is not None:
        return answer.verdict.value
    if row.primary:
        return _NO_VERDICT
    low, high = (answer.ratio and answer.ratio.interval) or (0.0, math.inf)
    if low <= 1 <= high:
        return _UNCLEAR
    return "higher" if low > 1 else "lower"


def _overlap(answers: Sequence[ShownAnswer]) -> bool:
    ends = [answer.ratio.interval for answer in answers if answer.ratio and answer.ratio.interval]
    return max(low for low, _ in ends) <= min(high for _, high in ends)


def _apart(row: AnswerRow, labels: Sequence[str], difference: _FurthestPair) -> str:
    low, high = row.answers[difference.low].ratio, row.answers[difference.high].ratio
    assert low is not None
    assert high is not None
    return (
        f"the ratio of {labels[difference.high]} is {ratio_text(high.value / low.value)} times that of "
        f"{labels[difference.low]}"
    )


def _notices(
    named: Sequence[NamedReport],
    runs: Sequence[ShownRun],
    said: Sequence[dict[_ComparisonKey, _OneAnswer]],
    version: str,
) -> Iterator[str]:
    for run in runs:
        if run.redline != version:
            how = (
                "its recordings are judged by this version"
                if run.judged_now
                else "its verdicts are of that version: name its directory, and this version judges it"
            )
            measured = run.redline or "of an unknown version"
            yield f"{run.label} was measured by Redline {measured}, this is {version}: {how}"
    for run, one in zip(runs, named, strict=True):
        if isinstance(one.report, LimitReport):
            cut = [cell.slug for cell in one.report.cells if cell.ended != "converged"]
            lacking = [f"the search ended before an answer for {', '.join(cut)}"] if cut else []
        else:
            lacking = [*lacks(one.report)]
        yield from (f"{run.label}: {text}" for text in lacking)
    texts = {
        one.report.suite_text if isinstance(one.report, LimitReport) else one.report.run.suite_text for one in named
    }
    if len(texts) > 1:
        yield "the suites are not the same text"
    otherwise = sorted(
        {
            f"{key.cell} against {key.baseline}"
            for first, second in combinations(said, 2)
            for key in first.keys() & second.keys()
            if first[key].ids != second[key].ids
        }
    )
    if otherwise:
        more = f" and {len(otherwise) - 3} more" if len(otherwise) > 3 else ""
        yield f"servers, requests or loads of the same name are defined otherwise: {', '.join(otherwise[:3])}{more}"
