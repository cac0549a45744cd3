"""The JSON contract: the model, its published schema, and the rendered output agree."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from redline.model import Report
from redline.render import RENDERERS
from tests import golden
from tests.fakes import reports
from tests.fakes.published import published

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "report.schema.json"
ALL: list[Callable[[], Report]] = [
    reports.healthy,
    reports.alone,
    reports.doubtful,
    reports.skipping,
    reports.died,
    reports.nasty,
]


def schema() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(SCHEMA.read_text())
    return made


def test_golden() -> None:
    golden.check("report.json", RENDERERS["json"](reports.alone()))


def test_the_published_schema_is_that_of_the_model() -> None:
    made = Report.model_json_schema()
    if os.environ.get("REDLINE_WRITE_SCHEMAS"):
        SCHEMA.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    assert schema() == made, "REDLINE_WRITE_SCHEMAS=1 pytest writes it anew"


@pytest.mark.parametrize("make", ALL)
def test_what_is_rendered_is_valid_and_reads_back(make: Callable[[], Report]) -> None:
    report = make()
    rendered = RENDERERS["json"](report)
    jsonschema.validate(json.loads(rendered), schema())
    assert Report.model_validate_json(rendered) == published(report)
    assert RENDERERS["json"](report) == rendered


def test_an_unknown_key_is_refused_by_the_schema() -> None:
    document = json.loads(RENDERERS["json"](reports.alone()))
    document["extra"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize("make", ALL)
def test_its_pieces_are_the_whole(make: Callable[[], Report]) -> None:
    report = make()
    assert b"".join(report.json_pieces()) == report.json_bytes(indent=2)


def test_a_piece_has_no_more_than_one_cell() -> None:
    report = reports.healthy()
    pieces = [piece.count(b'\n      "cell_id": ') for piece in report.json_pieces()]
    assert len(report.cells) > 2
    whole = report.json_bytes(indent=2)
    cells = whole[whole.index(b'\n  "cells": [') : whole.index(b'\n  "comparisons": [')]
    assert cells.count(b'\n      "cell_id": ') == len(report.cells)
    assert pieces[0] == 1
    assert pieces[1 : len(report.cells)] == [1] * (len(report.cells) - 1)
