"""Parse objectives: `p99 < 200ms, errors < 0.1%`, and `items: p95 < 50ms` for a scenario or load."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from redline.errors import WrongValueError
from redline.model import Objective
from redline.quantities import clip, did_you_mean, parse_duration, parse_share, quoted

_LATENCY_METRICS = ("p50", "p75", "p90", "p95", "p99", "p99.9", "max")
_SHARE_METRICS = ("errors", "achieved")
_METRICS = (*_LATENCY_METRICS, *_SHARE_METRICS)
_HINT = "write conditions such as `p99 < 200ms, errors < 0.1%, achieved > 99%`"
_CONDITION = re.compile(r"(?:([^:<>=]+):)?\s*([^\s<>=]+)\s*([<>]=?|=+)\s*(.+)", re.DOTALL)


@dataclass(frozen=True)
class Selectable:
    """The loads and the scenarios to which an objective may apply."""

    loads: Sequence[str] = ()
    scenarios: Sequence[str] = ()

    def meant(self, written: str) -> tuple[str | None, str | None]:
        """Resolve `LOAD/SCENARIO`, or the name of a load or a scenario. Raises WrongValueError."""
        load, slash, scenario = (part.strip() for part in written.partition("/"))
        if slash:
            return self._known(load, self.loads, "load"), self._known(scenario, self.scenarios, "scenario")
        if load in self.loads and load in self.scenarios:
            hint = f"write `{load}/SCENARIO` or `LOAD/{load}`"
            raise WrongValueError(f"`{clip(load)}` is both a load and a scenario", hint)
        if load in self.loads:
            return load, None
        return None, self._known(load, (*self.scenarios, *self.loads), "scenario or load")

    def _known(self, name: str, among: Sequence[str], what: str) -> str:
        if name not in among:
            hint = did_you_mean(name, tuple(among)) or (f"there is: {', '.join(among)}" if among else _HINT)
            raise WrongValueError(f"there is no {what} `{clip(name)}` for an objective", hint)
        return name


NOTHING = Selectable()


def parse_objectives(text: str, names: Selectable = NOTHING) -> tuple[Objective, ...]:
    """Parse conditions separated by commas, in the order written: `p99 < 200ms, errors < 0.1%, achieved > 99%`.

    p50, p75, p90, p95, p99, p99.9 and max are upper bounds of the response time; `errors` is an upper bound of the
    share of failed requests; `achieved` is a lower bound of the share of an open load's rate that was answered. A name
    and a colon apply a condition, and the conditions after it, to that entry of `names`: `items: p99 < 20ms`.
    Raises WrongValueError (a ValueError) for anything else, for a limit that nothing can meet, and for a metric that
    is named twice.
    """
    objectives, selector = list[Objective](), ""
    for part in text.split(","):
        objective, selector = _objective(part.strip(), selector, names)
        if _key(objective) in map(_key, objectives):
            raise WrongValueError(f"`{objective.metric}` has more than one condition", "keep the stricter one")
        objectives.append(objective)
    return tuple(objectives)


def _key(objective: Objective) -> tuple[str, str | None, str | None]:
    return objective.metric, objective.load, objective.scenario


def _objective(text: str, before: str, names: Selectable) -> tuple[Objective, str]:
    """A condition, and the name that it applies to: its own, or else the previous condition's."""
    match = _CONDITION.fullmatch(text)
    if not match:
        raise WrongValueError(f"{quoted(text)} is not a condition", _HINT)
    written, metric, sign, limit_text = match.groups()
    selector = before if written is None else written.strip()
    if metric not in _METRICS:
        hint = did_you_mean(metric, _METRICS) or _HINT
        raise WrongValueError(f"`{clip(metric)}` is not a metric that an objective can bound", hint)
    right_sign = ">" if metric == "achieved" else "<"
    if sign != right_sign:
        side = "a lower" if metric == "achieved" else "an upper"
        hint = f"write `{metric} {right_sign} {limit_text.strip()}`"
        raise WrongValueError(f"`{metric}` takes {side} bound, not `{sign}`", hint)
    limit = float(parse_duration(limit_text)) if metric in _LATENCY_METRICS else parse_share(limit_text)
    if (sign == "<" and limit == 0) or (sign == ">" and limit == 1):
        raise WrongValueError(f"{quoted(text)} can never be met", _HINT)
    load, scenario = names.meant(selector) if selector else (None, None)
    plain = f"{metric} {sign} {limit_text.strip()}"
    objective = Objective.model_validate(
        {
            "metric": metric,
            "below": sign == "<",
            "limit": limit,
            "text": f"{selector}: {plain}" if selector else plain,
            "load": load,
            "scenario": scenario,
        }
    )
    return objective, selector


def _texts(value: object) -> tuple[str, ...]:
    written = value if isinstance(value, list) else [value]
    texts = tuple(text for text in written if isinstance(text, str))
    if not texts or len(texts) < len(written):
        hint = 'write it like "p99 < 200ms, errors < 0.1%", in quotes if it has a colon'
        raise WrongValueError("an objective is text, or a list of texts", hint)
    return texts


def _sets(value: object) -> dict[str, tuple[str, ...]]:
    """Sets of objectives by name; the name of unnamed objectives is empty."""
    if not isinstance(value, dict):
        return {"": _texts(value)}
    names = [name for name in value if isinstance(name, str) and name.strip()]
    if not names or len(names) < len(value):
        raise WrongValueError("a set of objectives has no name", "write them like `good: p99 < 200ms`")
    return {name.strip(): _texts(conditions) for name, conditions in value.items()}


_OBJECTIVE = {"type": "string", "examples": ["p99 < 200ms, errors < 0.1%, achieved > 99%"]}
_OBJECTIVES = [_OBJECTIVE, {"type": "array", "items": _OBJECTIVE, "minItems": 1}]
_SETS = {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": _OBJECTIVES}}
ObjectiveSets = Annotated[
    dict[str, tuple[str, ...]], BeforeValidator(_sets), WithJsonSchema({"anyOf": [*_OBJECTIVES, _SETS]})
]
