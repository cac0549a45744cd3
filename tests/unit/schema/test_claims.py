"""What a published number allows, and claims that are not whole."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from redline.errors import WrongValueError
from redline.model import Metric
from redline.schema.claims import ClaimSchema, expectation, parse_ratio


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0.8", 0.72, 0.88), ("< 1", 0.0, 1.0), ("<1", 0.0, 1.0), ("> 1", 1.0, None), ("0.35 to 0.45", 0.35, 0.45)],
)
def test_what_agrees_with_a_ratio(text: str, low: float, high: float | None) -> None:
    least, most = expectation(text, parse_ratio)
    assert least == pytest.approx(low)
    assert most == (None if high is None else pytest.approx(high))


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "-1", "1e400", "0.5 to", "to 1", "= 1", "<", "0.45 to 0.35", "1 to 1"]
)
def test_no_ratio(text: str) -> None:
    with pytest.raises(WrongValueError):
        expectation(text, parse_ratio)


@given(st.floats(0.001, 1000), st.floats(0.001, 1000))
def test_a_number_agrees_with_itself(one: float, other: float) -> None:
    low, high = expectation(f"{one:.6f}", parse_ratio)
    assert high is not None
    assert low < one < high
    least, most = sorted((round(one, 6), round(other, 6)))
    if least < most:
        assert expectation(f"{least:.6f} to {most:.6f}", parse_ratio) == (least, most)


@pytest.mark.parametrize(
    ("metric", "level", "expected"),
    [
        ("p99", "< 1ms", (0.0, 1e6)),
        ("p50", "5ms to 8ms", (5e6, 8e6)),
        ("cpu", "> 20us", (2e4, None)),
        ("throughput", "> 60000/s", (6e4, None)),
        ("memory", "< 64MiB", (0.0, float(2**26))),
        ("received", "> 5MB/s", (5e6, None)),
    ],
)
def test_a_level_has_the_unit_of_its_metric(metric: str, level: str, expected: tuple[float, float | None]) -> None:
    claim = ClaimSchema.model_validate({"claim": "so", "of": "a.b.C.d", "metric": metric, "level": level}).claimed()
    assert (claim.low, claim.high) == expected
    assert claim.expected == level
    assert claim.metric.value == metric or (metric, claim.metric) == ("cpu", Metric.CPU_PER_REQUEST)


WHOLE = {"claim": "so", "of": "a.b.C.d", "to": "a.c.C.d", "ratio": 2}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ratio": None}, "does not say what to compare"),
        ({"level": "1ms"}, "does not say what to compare"),
        ({"of": None}, "does not say what to compare"),
        ({"to": None}, "a ratio needs `to`"),
        ({"ratio": None, "level": "1ms", "metric": "p99"}, "a level is of one cell"),
        ({"ratio": "1 times"}, "`1 times` is not a ratio"),
        ({"ratio": True}, "not what was published"),
        ({"metric": "latency"}, "`latency` is not a metric"),
        ({"missing": "two machines"}, "a claim that is missing has no cells"),
        ({"ratio": None, "to": None, "level": "1"}, "is not a duration|has no unit|is not a rate"),
    ],
)
def test_what_is_no_claim(changed: dict[str, object], message: str) -> None:
    written = {key: value for key, value in (WHOLE | {"metric": "p50"} | changed).items() if value is not None}
    with pytest.raises(ValidationError) as raised:
        ClaimSchema.model_validate(written)
    assert re.search(message, str(raised.value))


def test_a_claim_that_nothing_shows() -> None:
    claim = ClaimSchema.model_validate({"id": "T1", "claim": "so", "missing": "two machines"}).claimed()
    assert (claim.id, claim.text, claim.missing, claim.of, claim.expected) == ("T1", "so", "two machines", "", "")
