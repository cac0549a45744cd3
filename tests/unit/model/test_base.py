"""Model classes: values that share what they can, and their JSON form in bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from redline.model.base import Frozen, omitted_if_default
from redline.model.distribution import AnsweredBy, BandedPercentile, SharesCompared


class Point(Frozen):
    """A value with a field that its JSON form leaves out where it has the default."""

    name: str
    size: int = omitted_if_default(3)


def test_values_of_a_class_share_the_set_of_their_names() -> None:
    first, read = Point(name="a"), Point.model_validate_json('{"name": "b", "size": 4}')
    assert first.__pydantic_fields_set__ is read.__pydantic_fields_set__ == {"name", "size"}


def test_a_changed_copy_leaves_the_shared_set_alone() -> None:
    first = Point(name="a")
    assert first.model_copy(update={"size": 5}) == Point(name="a", size=5)
    with pytest.raises(TypeError, match="Point has no field other"):
        first.model_copy(update={"other": 1})
    assert Point(name="b").__pydantic_fields_set__ == {"name", "size"}


@given(st.text(), st.integers(-9, 9))
def test_json_in_bytes_is_the_same_data(name: str, size: int) -> None:
    content = Point(name=name, size=size).json_bytes(indent=2)
    assert json.loads(content) == {"name": name} | ({} if size == 3 else {"size": size})


def test_json_in_bytes_shows_what_is_invisible() -> None:
    assert Point(name="a\x7f\u202e\u200bµ±").json_bytes() == '{"name":"a\\u007f\\u202e\\u200bµ±"}'.encode()


def test_text_that_cannot_be_encoded_is_escaped() -> None:
    assert Point(name="file-\udcff").json_bytes() == b'{"name":"file-\\\\udcff"}'


BANDED = TypeAdapter(BandedPercentile)
ROWS = SharesCompared(
    cell_id="a",
    baseline_id="b",
    n=2,
    method="",
    points=(AnsweredBy(ns=1, cell=0.5, baseline=0.25, difference=0.25, low=0.0, high=0.5),),
)


def test_rows_have_the_json_form_of_other_values() -> None:
    assert SharesCompared.model_validate_json(ROWS.model_dump_json()) == ROWS
    assert json.loads(BANDED.dump_json(BandedPercentile(q=0.5, ns=3))) == {"q": 0.5, "ns": 3}


@pytest.mark.parametrize("field", ['"other": 1', '"difference": "much"', '"difference": NaN'])
def test_rows_are_as_strict_as_other_values(field: str) -> None:
    content = ROWS.model_dump_json().replace('"difference":0.25', field)
    with pytest.raises(ValidationError):
        SharesCompared.model_validate_json(content)
