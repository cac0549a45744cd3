"""The axes of a server that matter, from its variants or a screen's fraction of them, and what to run next. Pure."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from redline.analysis.compare import off_schedule
from redline.analysis.results import CellResult
from redline.model import SHOWN, Estimate, LevelEffect, MainEffect, MainEffects, Metric, Suite
from redline.quantities import percent
from redline.stats import ALPHA, CONFIDENCE, QUANTILE_OF, factorial, holm_adjust
from redline.suite.screening import Axes, axes_of_server, by_server

_METHOD = "least squares of logarithms by trial: main effects and rounds"


def main_effects(results: Mapping[str, CellResult], suite: Suite) -> tuple[MainEffects, ...]:
    """The main effects of every server, scenario and load; without a screen only of servers with several axes.

    (Effects between variants show a single axis.) Main effects in primary metrics have verdicts. The p-values in a
    metric are adjusted as a family.
    """
    made = list(_main_effects(results, suite))
    ps: dict[Metric, list[float]] = {metric: [] for metric in Metric}
    for effects in made:
        ps[effects.metric] += [effect.p for effect in effects.effects if effect.p is not None]
    adjusted = {metric: iter(holm_adjust(known)) for metric, known in ps.items()}
    return tuple(
        effects.having(tuple(_decided(effect, adjusted[effects.metric], suite.threshold) for effect in effects.effects))
        for effects in made
    )


def next_command(suite: Suite, screened: Iterable[MainEffects], command: str) -> str:
    """The screen's command with irrelevant axes fixed and all others in full; empty if all axes matter."""
    mattering = {effect.axis for effects in screened for effect in effects.effects if effect.verdict == "matters"}
    tested = {effect.axis for effects in screened for effect in effects.effects if effect.verdict}
    left = list(suite.variants)
    fixed: list[str] = []
    axes = {name for variants in by_server(suite.variants).values() for name in axes_of_server(variants).values}
    for axis in sorted(axes & tested - mattering):
        counts = Counter(variant.settings[axis] for variant in left if axis in variant.settings)
        if counts:
            value = counts.most_common(1)[0][0]
            fixed += ["-w", f"{axis}={value}"]
            left = [variant for variant in left if variant.settings.get(axis, value) == value]
    words = _without_output([word for word in shlex.split(command) if word != "--screen"])
    return shlex.join([*words, *fixed])


def _without_output(words: Sequence[str]) -> list[str]:
    """The words of a command without its output folder, which is now in use."""
    kept: list[str] = []
    left = iter(words)
    for word in left:
        if word in ("-o", "--output"):
            next(left, "")
        elif not word.startswith("--output="):
            kept.append(word)
    return kept


def _main_effects(results: Mapping[str, CellResult], suite: Suite) -> Iterator[MainEffects]:
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in results.values():
        if cell.cell.role == "subject":
            key = cell.cell.variant.server, cell.cell.scenario.name, cell.cell.load.name
            groups.setdefault(key, []).append(cell)
    full = by_server([variant for variant in suite.variants if not variant.misfit])
    fewest = 1 if suite.screened else 2
    for (server, _, _), cells in groups.items():
        if min(len(axes_of_server(full[server]).values), len(cells)) < fewest:
            continue
        first = cells[0].cell.load
        for metric in SHOWN:
            if metric is Metric.THROUGHPUT and not first.saturates:
                continue
            yield _of_metric(cells, metric, suite.screened.get(server, len(full[server])))


def _of_metric(cells: Sequence[CellResult], metric: Metric, possible: int) -> MainEffects:
    """The main effects on a server's variants in a metric, or why there are none."""
    used = [cell for cell in cells if cell.comparable and not cell.perturbed and cell.having(metric)]
    variants = [cell.cell.variant for cell in used]
    axes = axes_of_server(variants) if variants else Axes({}, ())
    factors = factorial.coded(axes.runs, axes.levels) if axes.values else []

    def result(effects: tuple[MainEffect, ...] = (), refused: str = "") -> MainEffects:
        return MainEffects(
            server=cells[0].cell.variant.server,
            scenario=cells[0].cell.scenario.name,
            load=cells[0].cell.load.name,
            metric=metric,
            variants=len(used),
            possible=possible,
            resolution=factorial.resolution(factors) if factors else "III",
            effects=effects,
            refused=refused,
        )

    if refused := _refused(used, metric) or ("" if factors else "no axis has two values with valid trials"):
        return result(refused=refused)
    rows = [
        (math.log(value), trial.round, run)
        for cell, run in zip(used, axes.runs, strict=True)
        for value, trial in zip(cell.sample(metric).by_trial.tolist(), cell.having(metric), strict=True)
        if value > 0
    ]
    by_trial = factorial.coded([run for _, _, run in rows], axes.levels)
    fitted = factorial.main_effects([value for value, _, _ in rows], [block for _, block, _ in rows], by_trial)
    if fitted is None:
        return result(refused="one trial of each variant does not show how trials scatter")
    is_primary = metric in used[0].cell.load.primary_metrics
    mixed, names = factorial.aliases(factors), list(axes.values)
    return result(
        tuple(
            _effect(
                name,
                axes.values[name],
                effect,
                len(rows),
                is_primary=is_primary,
                mixed_with=tuple(f"{names[a]} x {names[b]}" for a, b in pairs),
            )
            for name, effect, pairs in zip(names, fitted, mixed, strict=True)
        )
    )


def _refused(used: Sequence[CellResult], metric: Metric) -> str:
    if len({cell.cell.load for cell in used}) > 1:
        return "the rates of its variants differ, since they are shares of capacities"
    if metric in QUANTILE_OF or metric is Metric.CPU_PER_REQUEST:
        for cell in used:
            share = None if cell.cell.load.saturates else off_schedule(cell.having(metric))
            if share is not None and (metric in QUANTILE_OF or share > 1):
                return f"{cell.cell.variant.slug} answered {percent(share)} of what was due"
    return ""


def _effect(  # noqa: PLR0913 - what is known of an axis
    axis: str,
    values: Sequence[str],
    effect: factorial.FactorEffect | None,
    trials: int,
    *,
    is_primary: bool,
    mixed_with: tuple[str, ...],
) -> MainEffect:
    """The effect of an axis, without levels if it is not known."""
    differences = effect.differences if effect else ()
    return MainEffect(
        axis=axis,
        reference=values[0],
        levels=tuple(
            LevelEffect(value=value, ratio=_ratio(step, half, trials))
            for value, (step, half) in zip(values[1:], differences, strict=False)
        ),
        p=effect.p if effect and is_primary else None,
        resolution=math.expm1(max(half for _, half in differences)) if differences else None,
        verdict=None,
        mixed_with=mixed_with,
    )


def _ratio(step: float, half: float, trials: int) -> Estimate:
    return Estimate(
        value=math.exp(step),
        low=math.exp(step - half),
        high=math.exp(step + half),
        confidence=CONFIDENCE,
        unit="",
        n=trials,
        method=_METHOD,
    )


def _decided(effect: MainEffect, adjusted: Iterator[float], threshold: float) -> MainEffect:
    if effect.p is None:
        return effect
    p = next(adjusted)
    within = all(level.ratio.is_within(threshold) for level in effect.levels)
    return effect.with_verdict("too small" if within else "matters" if p < ALPHA else "not shown", p)
