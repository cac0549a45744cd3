"""The output of `--json` besides the report is published, command by command."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
from pydantic.json_schema import models_json_schema

from redline.cli.contracts import (
    BuildResult,
    CheckResult,
    DoctorResult,
    JudgeResult,
    ListResult,
    OutdatedResult,
    SearchJudgeResult,
    check_result,
)
from redline.extras.selftest.results import SelftestResult
from redline.model.bisection import Bisection
from redline.model.compared import CompareResult
from redline.model.history import History
from redline.model.limits import LimitReport
from redline.model.load_result import LoadResult
from redline.model.side_by_side import SideBySide
from redline.suite import expected_length_ns
from tests.fakes.recordings import simulated_run

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "cli.schema.json"
PUBLISHED = (
    CheckResult,
    LoadResult,
    LimitReport,
    CompareResult,
    Bisection,
    History,
    JudgeResult,
    SearchJudgeResult,
    ListResult,
    OutdatedResult,
    BuildResult,
    DoctorResult,
    SelftestResult,
    SideBySide,
)


def made() -> dict[str, Any]:
    """A single schema for all commands: a document is identified by its `format`."""
    kinds, together = models_json_schema([(kind, "serialization") for kind in PUBLISHED])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "redline --json",
        "oneOf": list(kinds.values()),
        "$defs": together["$defs"],
    }


def test_the_published_schema_is_that_of_the_code() -> None:
    text = json.dumps(made(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("REDLINE_WRITE_SCHEMAS"):
        SCHEMA.write_text(text, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == text, "REDLINE_WRITE_SCHEMAS=1 pytest writes it anew"


def test_every_command_has_a_format_of_its_own() -> None:
    formats = [kind.model_fields["format"].default for kind in PUBLISHED]
    assert len(set(formats)) == len(formats) == 14


def test_a_plan_as_json_fits_the_schema() -> None:
    plan = simulated_run().manifest.plan
    result = check_result(plan, expected_length_ns(plan))
    document = json.loads(result.model_dump_json())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert CheckResult.model_validate(document) == result
    assert sum(cell["trials"] for cell in document["cells"]) == document["trials"] == len(plan.trials)
