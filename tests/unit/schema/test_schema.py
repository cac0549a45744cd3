"""The published JSON Schemas equal the code's, fit the shipped files, and are as strict as the parser."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from redline.suite import Overrides, load_catalogue
from redline.suite.validate.resolve import read_suite
from tests.fakes.catalogues import FAMILY, SCENARIOS, SUITE
from tests.fakes.schemas import FILES, schemas

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference"
SHIPPED = [
    *[(path, "suite.schema.json") for path in sorted((ROOT / "suites").glob("*.yaml"))],
    *[(path, "server.schema.json") for path in sorted((ROOT / "catalogue").glob("*/server.yaml"))],
    (ROOT / "catalogue" / "scenarios.yaml", "scenarios.schema.json"),
    (ROOT / "catalogue" / "libraries.yaml", "libraries.schema.json"),
]


def is_valid(text: str, schema: str) -> bool:
    content = YAML(typ="safe", pure=True).load(text)
    return jsonschema.Draft202012Validator(schemas()[schema]).is_valid(content)


@pytest.mark.parametrize("name", sorted(FILES))
def test_what_is_published_is_what_the_code_means(name: str) -> None:
    text = json.dumps(schemas()[name], indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("REDLINE_WRITE_SCHEMAS"):
        (REFERENCE / name).write_text(text, encoding="utf-8")
    published = (REFERENCE / name).read_text(encoding="utf-8")
    assert published == text, (
        "run REDLINE_WRITE_SCHEMAS=1 pytest tests/unit/schema/test_schema.py and commit the result"
    )


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_schemas_are_schemas_and_their_examples_fit(name: str) -> None:
    schema = schemas()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    examples = list(found_examples(schema))
    assert examples
    for part, example in examples:
        jsonschema.Draft202012Validator({**part, "$defs": schema.get("$defs", {})}).validate(example)


def found_examples(part: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if isinstance(part, dict):
        for example in part.get("examples", []) if isinstance(part.get("examples"), list) else []:
            yield part, example
        for inner in part.values():
            yield from found_examples(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from found_examples(inner)


@pytest.mark.parametrize(("path", "schema"), SHIPPED, ids=[str(path.relative_to(ROOT)) for path, _ in SHIPPED])
def test_shipped_files_fit_and_name_their_schema(path: Path, schema: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert is_valid(text, schema)
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.split("=", 1)[1]).resolve() == REFERENCE / schema


@pytest.mark.parametrize(
    "text",
    [
        SUITE,
        SUITE + "objective: [p99 < 1s, errors < 1%]\nthreshold: 0.02\nceiling: {use: top.null}\nwarmup: 1m30s\n",
        SUITE.replace("{users: 64}", "{users: 1}").replace("1s", "1.5s"),
        SUITE.replace("closed: {users: 64}", "open: {rate: 300/min, connections: 1}"),
        SUITE.replace("[Get]", "[{name: M, post: /x, body: {size: 5MB}, headers: {A: b}, requires: {routes: 1}}]"),
        SUITE.replace("fam.plain,", "{use: fam.layered, with: {log: [off, server-log], routes: 1}},"),
        SUITE.replace("fam.plain,", "{use: fam.plain, http: 2, tls: {ca: a.pem, insecure: true, versions: [1.3]}},"),
        SUITE.replace("{users: 64}", "{users: 0, ramp: {to: 9, over: 1s}}"),
        SUITE.replace("{users: 64}", "{users: 1, depth: 2, think: {exponential: 1s}, requests_per_connection: 3}"),
        SUITE.replace("{users: 64}", "{users: 1, think: 1s}").replace("for: 1s", "for: 1s, count: 5"),
        SUITE.replace("{users: 64}", "{users: 1, pace: 2/s}"),
        SUITE + "warmup: {detect: {at_most: 1m30s}}\n",
        SUITE.replace("closed: {users: 64}", "open: {arrivals: {replay: a.txt}, connections_at_start: 1, depth: 2}"),
        SUITE.replace("closed: {users: 64}", "open: {rate: 0, stages: [{to: 5/s, over: 1m}]}"),
        SUITE + "  half: {open: {rate: 50% of saturate}, for: 1s}\n",
        SUITE.replace(
            "[Get]", "[{name: M, requests: [{weight: 3, get: /a}, {put: /b, timestamp: {pointer: body, unit: s}}]}]"
        ),
        SUITE.replace("[Get]", "[{name: M, get: /x, headers: {A: [b, c]}, expect: {json: {/a: [1, null]}}}]"),
    ],
)
def test_what_the_parser_takes_fits(text: str) -> None:
    assert is_valid(text, "suite.schema.json")


@pytest.mark.parametrize(
    "text",
    [
        "about: x",
        SUITE + "jvm: [17]\n",
        SUITE + "trials: 0\n",
        SUITE + "warmup: 5\n",
        SUITE + "warmup: {detect: {at_most: 5}}\n",
        SUITE + "threshold: much\n",
        SUITE.replace("1s", "1 fortnight"),
        SUITE.replace("saturate", "two words"),
        SUITE.replace("users: 64", "users: 0"),
        SUITE + "  half: {open: {rate: 50%}, for: 1s}\n",
        SUITE.replace("closed: {users: 64}, ", ""),
        SUITE.replace("closed: {users: 64}", "closed: {users: 64}, open: {rate: 1}"),
        SUITE.replace("[Get]", "[{name: M}]"),
        SUITE.replace("[Get]", "[{name: M, get: x}]"),
        SUITE.replace("[Get]", "[{name: M, get: /x, requests: [{get: /a}]}]"),
        SUITE.replace("[Get]", "[{name: M, requests: [{weight: 1}]}]"),
        SUITE.replace("[Get]", "[{name: M, get: /x, expect: {json: {a: 1}}}]"),
        SUITE.replace("[Get]", "[{name: M, get: /x, timestamp: {pointer: now, unit: s}}]"),
        SUITE.replace("{users: 64}", "{users: 64, ramp: {to: 5}}"),
        SUITE.replace("{users: 64}", "{users: 64, think: {exponential: 5}}"),
        SUITE.replace("fam.plain,", "{use: fam.plain, http: 3},"),
    ],
)
def test_what_the_parser_refuses_by_its_form_does_not_fit(text: str) -> None:
    assert not is_valid(text, "suite.schema.json")


def test_the_catalogue_of_the_tests_fits() -> None:
    assert is_valid(FAMILY, "server.schema.json")
    assert is_valid(SCENARIOS, "scenarios.schema.json")
    assert not is_valid(FAMILY.replace("runtime", "runtimes"), "server.schema.json")
    assert not is_valid(SCENARIOS.replace("get:", "fetch:"), "scenarios.schema.json")


def test_the_reference_page_explains_every_key() -> None:
    page = (REFERENCE / "suite.md").read_text(encoding="utf-8")
    schema = schemas()["suite.schema.json"]
    keys = set(schema["properties"])
    for part in schema["$defs"].values():
        for form in (part, *part.get("anyOf", [])):
            keys |= set(form.get("properties", {}))
    assert len(keys) > 30
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


def test_the_example_of_the_reference_page_is_right() -> None:
    page = (REFERENCE / "suite.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    assert is_valid(example, "suite.schema.json")
    suite = read_suite(example, "example.yaml", load_catalogue(ROOT / "catalogue"), Overrides())
    assert [variant.slug for variant in suite.variants] == ["rust.hyper", "rust.axum+routes=1", "rust.axum"]


def test_every_example_of_the_reference_page_fits() -> None:
    page = (REFERENCE / "suite.md").read_text(encoding="utf-8")
    validator = jsonschema.Draft202012Validator(schemas()["suite.schema.json"])
    reader = YAML(typ="safe", pure=True)
    whole = {"servers": ["a.b"], "scenarios": ["A"], "loads": {"a": {"closed": {"users": 1}, "for": "1s"}}}
    examples = [block.split("```")[0] for block in page.split("```yaml\n")[1:]]
    assert len(examples) == 17
    for example in examples:
        validator.validate({**whole, **reader.load(example)})
