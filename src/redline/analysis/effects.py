"""The cost of a step on an axis of a server: another value of an option, or another scenario. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from redline.analysis.compare import Question, compare_cells, metrics_written, with_verdicts
from redline.analysis.results import CellResult, subjects_by_name
from redline.model import COMPARED, Comparison, Effect, Metric, OptionValue, Suite, Variant
from redline.model.catalogue import option_text
from redline.model.variant import FLAGS, PLACE, ROUTE

_SCENARIO = "scenario"
_OTHER_AXES = (ROUTE, PLACE, FLAGS)
_By = Mapping[tuple[str, str, str], CellResult]


def effects(
    results: Mapping[str, CellResult], suite: Suite, comparisons: Iterable[Comparison] = ()
) -> tuple[Effect, ...]:
    """Every effect in every compared metric, by the run's cells, then by options, route, place and scenario.

    Both sides have the same load: there is no effect between rates that are shares of different capacities. An effect
    that is already among `comparisons`, because a baseline is a variant of the server, is that comparison. All others
    on an axis in a metric are a family.
    """
    known = {_key(comparison): comparison for comparison in comparisons}
    by = subjects_by_name(results)
    steps = _steps(tuple({cell.cell.variant.slug: cell.cell.variant for cell in by.values()}.values()))
    made = []
    for cell in by.values():
        for axis, value, reference, other in (*_options(cell, steps, by), *_scenario(cell, by)):
            if other.cell.load != cell.cell.load:
                continue
            made += [
                Effect(
                    axis=axis,
                    value=value,
                    reference=reference,
                    comparison=compare_cells(cell, other, metric, suite.threshold, asked=metrics_written(suite)),
                )
                for metric in dict.fromkeys((*COMPARED, *(metrics_written(suite) or ())))
            ]
    axes = {_key(effect.comparison): effect.axis for effect in made}
    alone = [effect.comparison for effect in made if _key(effect.comparison) not in known]

    def question_of(comparison: Comparison) -> Question:
        axis, cell = axes[_key(comparison)], results[comparison.cell_id].cell
        return Question(f"{comparison.metric.words} by {axis}", cell.variant.slug)

    known |= {_key(verdict): verdict for verdict in with_verdicts(alone, question_of)}
    return tuple(effect.of(known[_key(effect.comparison)]) for effect in made)


def _key(comparison: Comparison) -> tuple[str, str, Metric]:
    return comparison.cell_id, comparison.baseline_id, comparison.metric


def _options(
    result: CellResult, steps: Mapping[str, list[tuple[str, Variant]]], by: _By
) -> Iterator[tuple[str, str, str, CellResult]]:
    cell = result.cell
    for axis, reference in steps.get(cell.variant.slug, []):
        other = by.get((reference.slug, cell.scenario.name, cell.load.name))
        if other is not None:
            yield axis, cell.variant.settings[axis], reference.settings[axis], other


def _scenario(result: CellResult, by: _By) -> Iterator[tuple[str, str, str, CellResult]]:
    cell, against = result.cell, result.cell.scenario.against
    other = by.get((cell.variant.slug, against, cell.load.name)) if against else None
    if other is not None:
        yield _SCENARIO, cell.scenario.name, other.cell.scenario.name, other


def _steps(variants: tuple[Variant, ...]) -> dict[str, list[tuple[str, Variant]]]:
    """The axes on which a variant differs from the server's first value, by slug, with the variant of that value.

    `variants` are those that are run, in the order of the suite: skipped variants are no reference. A variant is there
    only if all else is equal: other options, flags, HTTP, TLS, route and container. A route has its own HTTP and TLS.
    """
    steps = _option_steps(variants)
    for axis in _OTHER_AXES:
        first: dict[str, Variant] = {}
        for variant in variants:
            reference = first.setdefault(variant.without(axis).slug, variant)
            if variant.settings.get(axis) != reference.settings.get(axis):
                steps.setdefault(variant.slug, []).append((axis, reference))
    return steps


def _option_steps(variants: tuple[Variant, ...]) -> dict[str, list[tuple[str, Variant]]]:
    """The steps on the axes that are options."""
    first: dict[tuple[str, str], OptionValue] = {}
    for variant in variants:
        for name, value in variant.options.items():
            first.setdefault((variant.entry.name, name), value)
    by_content = {_content(variant, variant.options): variant for variant in variants}
    steps: dict[str, list[tuple[str, Variant]]] = {}
    for variant in variants:
        for name, value in variant.options.items():
            reference = first[variant.entry.name, name]
            if option_text(value) == option_text(reference):
                continue
            other = by_content.get(_content(variant, variant.options | {name: reference}))
            if other is not None:
                steps.setdefault(variant.slug, []).append((name, other))
    return steps


def _content(variant: Variant, options: Mapping[str, OptionValue]) -> tuple[object, ...]:
    texts = tuple(sorted((name, option_text(value)) for name, value in options.items()))
    return variant.entry.name, texts, variant.flags, variant.http, variant.tls, variant.route_name, variant.container
