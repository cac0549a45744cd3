"""Parse what ends a load early: `errors > 5% for 3s`, `p99 > 1s for 10s`."""

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from redline.errors import WrongValueError
from redline.model import AbortRule
from redline.quantities import clip, did_you_mean, parse_duration, parse_share, quoted
from redline.schema.objectives import MESSAGE_METRICS

_METRICS = ("errors", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", *MESSAGE_METRICS)
_HINT = "write it like `errors > 5% for 3s` or `p99 > 1s for 10s`"
_RULE = re.compile(r"([^\s<>=]+(?:\s+[^\s<>=]+)?)\s*([<>]=?|=+)\s*(\S+)(?:\s+for\s+(\S+))?")


def parse_abort_rule(text: str) -> AbortRule:
    """Parse a condition that ends a load once it has held for a time. Raises WrongValueError (a ValueError)."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise WrongValueError(f"{quoted(text)} does not say when to abort", _HINT)
    metric, sign, limit_text, for_text = match.groups()
    metric = " ".join(metric.split())
    if metric not in _METRICS:
        hint = did_you_mean(metric, _METRICS) or _HINT
        raise WrongValueError(f"`{clip(metric)}` is not a metric that ends a load", hint)
    if sign != ">":
        raise WrongValueError(
            f"a load is aborted above a limit, not `{clip(sign)}`", f"write `{metric} > {limit_text}`"
        )
    if for_text is None:
        raise WrongValueError(f"{quoted(text)} does not say for how long", f"add it: `{text.strip()} for 3s`")
    limit = parse_share(limit_text) if metric == "errors" else float(parse_duration(limit_text))
    if metric == "errors" and limit >= 1:
        raise WrongValueError(f"{quoted(text)} can never be", _HINT)
    for_ns = parse_duration(for_text)
    if for_ns <= 0:
        raise WrongValueError(f"{quoted(text)} would end a load at once", _HINT)
    return AbortRule.model_validate({"metric": metric, "limit": limit, "for_ns": for_ns, "text": text.strip()})


def _rules(value: object) -> tuple[AbortRule, ...]:
    written = value if isinstance(value, list) else [value]
    texts = [text for text in written if isinstance(text, str)]
    if not texts or len(texts) < len(written):
        raise WrongValueError("`abort_when` is text, or a list of texts", _HINT)
    return tuple(map(parse_abort_rule, texts))


_TEXT = {"type": "string", "examples": ["errors > 5% for 3s"]}
AbortRules = Annotated[
    tuple[AbortRule, ...],
    BeforeValidator(_rules),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}),
]
