"""Parse objectives: `p99 < 200ms, errors < 0.1%`, and `items: p95 < 50ms` for a scenario, load or request."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from redline.errors import WrongValueError
from redline.lazily import dataclass
from redline.model import Objective, Scenario
from redline.model.streams import MESSAGE_TIMES
from redline.quantities import clip, did_you_mean, parse_duration, parse_share, quoted

_LATENCY_METRICS = ("p50", "p75", "p90", "p95", "p99", "p99.9", "max")
_LOWER_BOUNDS = ("achieved", "goodput")
MESSAGE_METRICS = tuple(f"{times} {metric}" for times in MESSAGE_TIMES for metric in _LATENCY_METRICS)
_METRICS = (*_LATENCY_METRICS, "errors", *_LOWER_BOUNDS, *MESSAGE_METRICS)
_HINT = "write conditions such as `p99 < 200ms, errors < 0.1%, achieved > 99%`"
_CONDITION = re.compile(
    r"(?:((?:[^:<>=]+/)?[A-Z]+ /\S*(?: #\d+)?|[^:<>=]+):)?\s*([^\s<>=]+(?:\s+[^\s<>=]+)?)\s*([<>]=?|=+)\s*(.+)",
    re.DOTALL,
)

_LOOKS_SENT = re.compile(r"[A-Z]+ /\S*(?: #\d+)?")
"""`GET /items`: no load or scenario has such a name."""


@dataclass(frozen=True)
class Selectable:
    """The loads, scenarios and requests to which an objective may apply.

    `requests` are the labels of requests by scenario, for scenarios that have several; `sent` says of each, in the same
    order, how it is sent: `GET /items`.
    """

    loads: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    requests: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sent: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, loads: Iterable[str], scenarios: Sequence[Scenario]) -> "Selectable":
        """What a suite with these loads and scenarios has."""
        several = {scenario.name: scenario.several_labels for scenario in scenarios if scenario.several_labels}
        sent = {
            scenario.name: tuple(f"{request.method} {request.path}" for request in scenario.requests)
            for scenario in scenarios
        }
        return cls(tuple(loads), tuple(scenario.name for scenario in scenarios), several, sent)

    def without_places(self) -> "Selectable":
        """The requests alone: a flag without a name of a scenario or load."""
        return replace(self, loads=(), scenarios=())

    def is_request(self, written: str) -> bool:
        """Whether a request is meant: by its label, or as `SCENARIO/REQUEST`."""
        try:
            return bool(self._request(written))
        except WrongValueError:
            return False

    def meant(self, written: str) -> dict[str, str]:
        """Resolve the name of a load, scenario or request, `LOAD/SCENARIO` or `SCENARIO/REQUEST`: keys of an objective.

        A scenario comes before a request of the same name. Raises WrongValueError.
        """
        if request := self._request(written):
            return request
        load, scenario = self._place(written)
        return {key: name for key, name in (("load", load), ("scenario", scenario)) if name is not None}

    def _request(self, written: str) -> dict[str, str]:
        """The request that is meant, with its scenario if that is written too; empty if it is none."""
        scenario, slash, request = written.partition("/")
        place, request = scenario.strip(), request.strip()
        within = self.requests.get(place, ())
        if slash and within and (request in within or place not in self.loads):
            label = request if request in within else self._sent_as(request, [place])[1]
            return {"scenario": place, "request": label}
        known = [label for labels in self.requests.values() for label in labels]
        if written in known and written not in (*self.loads, *self.scenarios):
            return {"request": written}
        if not _LOOKS_SENT.fullmatch(written):
            return {}
        place, label = self._sent_as(written, tuple(self.requests))
        alone = sum(label in labels for labels in self.requests.values()) == 1
        # Another scenario may have a request of that name that is sent otherwise.
        return {"request": label} if alone else {"scenario": place, "request": label}

    def _sent_as(self, written: str, scenarios: Sequence[str]) -> tuple[str, str]:
        """The scenario and the label of the request that is sent like this. Raises WrongValueError unless it is one."""
        matches = [
            (name, label)
            for name in scenarios
            for label, sent in zip(self.requests[name], self.sent.get(name, ()), strict=False)
            if sent == written
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(label if len(scenarios) == 1 else f"{name}/{label}" for name, label in matches)
            raise WrongValueError(f"several requests are sent as `{clip(written)}`", f"name it: {names}")
        known = [label for name in scenarios for label in self.requests[name]]
        hint = did_you_mean(written, tuple(known)) or (
            f"there is: {', '.join(known)}" if known else "a scenario of several requests has results by request"
        )
        where = f" of `{clip(scenarios[0])}`" if len(scenarios) == 1 < len(self.requests) else ""
        raise WrongValueError(f"there is no request `{clip(written)}`{where} for an objective", hint)

    def _place(self, written: str) -> tuple[str | None, str | None]:
        load, slash, scenario = (part.strip() for part in written.partition("/"))
        if slash:
            return self._known(load, self.loads, "load"), self._known(scenario, self.scenarios, "scenario")
        if load in self.loads and load in self.scenarios:
            hint = f"write `{load}/SCENARIO` or `LOAD/{load}`"
            raise WrongValueError(f"`{clip(load)}` is both a load and a scenario", hint)
        if load in self.loads:
            return load, None
        known = [label for labels in self.requests.values() for label in labels]
        what = "scenario, load or request" if known else "scenario or load"
        return None, self._known(load, (*self.scenarios, *self.loads, *known), what)

    def _known(self, name: str, among: Sequence[str], what: str) -> str:
        if name not in among:
            hint = did_you_mean(name, tuple(among)) or (f"there is: {', '.join(among)}" if among else _HINT)
            raise WrongValueError(f"there is no {what} `{clip(name)}` for an objective", hint)
        return name


NOTHING = Selectable()


def parse_objectives(text: str, names: Selectable = NOTHING) -> tuple[Objective, ...]:
    """Parse conditions separated by commas, in the order written: `p99 < 200ms, errors < 0.1%, achieved > 99%`.

    p50, p75, p90, p95, p99, p99.9 and max are upper bounds of the response time; `errors` is an upper bound of the
    share of failed requests; `achieved` is a lower bound of the share of a rate or a pace that was answered.
    `first-message p95`, `gap p99`, `slowest-gap p99`, `per-message p50`, `push p99` and `jitter p99` are about the
    messages of conversations, `goodput` is a lower bound of the share of good ones. A name
    and a colon apply a condition, and the conditions after it, to that entry of `names`: `items: p99 < 20ms`,
    `GET /items: p99 < 20ms`.
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


def _key(objective: Objective) -> tuple[str | None, ...]:
    return objective.metric, objective.load, objective.scenario, objective.request


def _objective(text: str, before: str, names: Selectable) -> tuple[Objective, str]:
    """A condition, and the name that it applies to: its own, or else the previous condition's."""
    match = _CONDITION.fullmatch(text)
    if not match:
        raise WrongValueError(f"{quoted(text)} is not a condition", _HINT)
    written, metric, sign, limit_text = match.groups()
    selector, metric = before if written is None else written.strip(), " ".join(metric.split())
    if metric not in _METRICS:
        hint = did_you_mean(metric, _METRICS) or _HINT
        raise WrongValueError(f"`{clip(metric)}` is not a metric that an objective can bound", hint)
    right_sign = ">" if metric in _LOWER_BOUNDS else "<"
    if sign != right_sign:
        side = "a lower" if metric in _LOWER_BOUNDS else "an upper"
        hint = f"write `{metric} {right_sign} {limit_text.strip()}`"
        raise WrongValueError(f"`{metric}` takes {side} bound, not `{sign}`", hint)
    is_share = metric == "errors" or metric in _LOWER_BOUNDS
    limit = parse_share(limit_text) if is_share else float(parse_duration(limit_text))
    if (sign == "<" and limit == 0) or (sign == ">" and limit == 1):
        raise WrongValueError(f"{quoted(text)} can never be met", _HINT)
    meant = names.meant(selector) if selector else {}
    if metric == "achieved" and "request" in meant:
        raise WrongValueError("`achieved` is about the rate of a whole load", "leave out the request")
    plain = f"{metric} {sign} {limit_text.strip()}"
    objective = Objective.model_validate(
        {
            "metric": metric,
            "below": sign == "<",
            "limit": limit,
            "text": f"{selector}: {plain}" if selector else plain,
            **meant,
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
