"""Compare the limits of servers with those of their baselines in the same session. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, exp, hypot, log, sqrt
from statistics import NormalDist

from redline.model import Cell, Estimate, Suite, Verdict
from redline.model.limits import CellLimit, LimitAnswer, LimitComparison
from redline.stats import Decision, decide, holm_adjust


@dataclass(frozen=True)
class _LimitPair:
    """The answers of a server and its baseline for one set of objectives."""

    slug: str
    baseline: str
    ours: LimitAnswer
    theirs: LimitAnswer
    family: str

    @property
    def confidence(self) -> float | None:
        """The lower confidence of the two; None if either limit is known by single rates only, or is contested."""
        if self.ours.is_contested or self.theirs.is_contested:
            return None
        ours, theirs = self.ours.confidence, self.theirs.confidence
        return None if ours is None or theirs is None else min(ours, theirs)

    @property
    def logarithm(self) -> tuple[float, float] | None:
        """The logarithm of the ratio and the half width of its interval; None while an end is unknown.

        Independent errors add in quadrature, intervals of unknown confidence linearly.
        """
        ours, theirs = _middle_and_half(self.ours), _middle_and_half(self.theirs)
        if ours is None or theirs is None:
            return None
        half = ours[1] + theirs[1] if self.confidence is None else hypot(ours[1], theirs[1])
        return ours[0] - theirs[0], half

    @property
    def ratio(self) -> Estimate | None:
        """The ratio of the limits."""
        if self.logarithm is None:
            return None
        value, half = self.logarithm
        return Estimate(
            value=exp(value),
            low=exp(value - half),
            high=exp(value + half),
            confidence=self.confidence or 0.0,
            unit="ratio",
            n=1,
            method="middles of both limits" if self.confidence else "all ratios of both limits",
        )

    @property
    def p(self) -> float | None:
        """The two-sided p-value of no difference, by the normal distribution."""
        if self.logarithm is None or self.confidence is None:
            return None
        value, half = self.logarithm
        se = half / NormalDist().inv_cdf((1 + self.confidence) / 2)
        if se == 0:
            return 0.0 if value else 1.0
        return erfc(abs(value) / se / sqrt(2))


def limit_comparisons(
    cells: Sequence[Cell], limits: Mapping[str, CellLimit], suite: Suite
) -> tuple[LimitComparison, ...]:
    """Compare every server with its baseline in the same scenario and load; `limits` are by cell id.

    The comparisons of an objective with a baseline are a family. The verdict is `inconclusive` while a limit is
    unknown, or known by single rates only.
    """
    pairs = list(_pairs(cells, limits, suite))
    adjusted = _adjusted(pairs)
    return tuple(_compared(pair, suite.threshold, adjusted.get(place)) for place, pair in enumerate(pairs))


def _pairs(cells: Sequence[Cell], limits: Mapping[str, CellLimit], suite: Suite) -> Iterator[_LimitPair]:
    places = {(cell.variant.slug, cell.scenario.name, cell.load.name): limits.get(cell.id) for cell in cells}
    for cell in cells:
        against = suite.baseline_of(cell.variant.slug)
        ours = limits.get(cell.id)
        theirs = None if against is None else places.get((against, cell.scenario.name, cell.load.name))
        if ours is None or theirs is None:
            continue
        known = {answer.name: answer for answer in theirs.limits}
        for answer in ours.limits:
            if answer.name in known:
                family = f"limit within {answer.name} against {against}"
                yield _LimitPair(ours.slug, theirs.slug, answer, known[answer.name], family)


def _adjusted(pairs: Sequence[_LimitPair]) -> dict[int, tuple[float, int]]:
    """The adjusted p-value and the size of the family, by the index of the pair."""
    families: dict[str, list[tuple[int, float]]] = {}
    for place, pair in enumerate(pairs):
        if (p := pair.p) is not None:
            families.setdefault(pair.family, []).append((place, p))
    return {
        place: (p, len(members))
        for members in families.values()
        for (place, _), p in zip(members, holm_adjust([p for _, p in members]), strict=True)
    }


def _compared(pair: _LimitPair, threshold: float, adjusted: tuple[float, int] | None) -> LimitComparison:
    p, size = adjusted or (None, None)
    ratio = pair.ratio
    decision = Decision(Verdict.INCONCLUSIVE)
    if ratio is not None and pair.confidence is not None:
        decision = decide(ratio, threshold, higher_is_better=True, p_adjusted=p)
    return LimitComparison(
        slug=pair.slug,
        baseline=pair.baseline,
        objective=pair.ours.name,
        ratio=ratio,
        confidence=pair.confidence if ratio else None,
        verdict=decision.verdict,
        matters=decision.matters,
        threshold=threshold,
        p_adjusted=p,
        family=size,
        family_name=pair.family if size else "",
    )


def _middle_and_half(answer: LimitAnswer) -> tuple[float, float] | None:
    low, high = answer.passed, answer.failed
    if low is None or high is None or low <= 0:
        return None
    return (log(low) + log(high)) / 2, (log(high) - log(low)) / 2
