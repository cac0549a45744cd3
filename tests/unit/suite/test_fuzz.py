"""Whatever a file contains, the result is a suite or a UsageError with places and hints; never a stack trace."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.model import Suite
from redline.suite import Catalogue, Overrides, load_suite, make_plan
from redline.suite.catalogue import read_family, read_scenarios
from redline.suite.validate.resolve import read_suite
from tests.fakes.catalogues import FAMILY, SCENARIOS, SUITE, small_catalogue

KEYS = [
    "about",
    "servers",
    "baseline",
    "ceiling",
    "scenarios",
    "loads",
    "warmup",
    "trials",
    "quick",
    "against",
    "seed",
    "timeout",
    "threshold",
    "objective",
    "use",
    "with",
    "name",
    "get",
    "post",
    "body",
    "size",
    "fill",
    "expect",
    "status",
    "length",
    "under_load",
    "requires",
    "headers",
    "closed",
    "open",
    "users",
    "rate",
    "arrivals",
    "connections",
    "for",
    "count",
    "depth",
    "think",
    "exponential",
    "pace",
    "requests_per_connection",
    "connections_at_start",
    "ramp",
    "stages",
    "to",
    "over",
    "replay",
    "requests",
    "weight",
    "timestamp",
    "pointer",
    "unit",
    "json",
    "sha256",
    "http",
    "tls",
    "ca",
    "insecure",
    "server_name",
    "versions",
    "resumption",
    "runtime",
    "build",
    "run",
    "folder",
    "inputs",
    "outputs",
    "needs",
    "command",
    "version",
    "hint",
    "start",
    "env",
    "ready",
    "path",
    "within",
    "stop",
    "options",
    "values",
    "default",
]
WORDS = [
    "fam.plain",
    "fam.layered",
    "top.null",
    "Get",
    "GetMulti",
    "routes",
    "log",
    "server-log",
    "off",
    "on",
    "saturate",
    "1s",
    "250ms",
    "5%",
    "0",
    "-1",
    "5000/s",
    "poisson",
    "/path0",
    "p99<1s",
    "{port}",
    "{folder}",
    "{nothing}",
    "{seq}",
    "{{seq}}",
    "{rand:1..9}",
    "{rand:9..1}",
    "{pick:a}",
    "/{pick:a}",
    "/a/b",
    "1.1",
    "2",
    "native",
    '""',
    "''",
    "[]",
    "{}",
    "*a",
    "&a",
    "!!int",
    "!x",
    "<<:",
    "---",
    "...",
    "|",
    ">",
    "@",
    "`",
    "%",
]

words = st.sampled_from(KEYS + WORDS) | st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=25,
)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return small_catalogue(tmp_path_factory.mktemp("fuzz"))


def assert_suite_or_usage_error(read: Callable[[], Suite]) -> None:
    try:
        suite = read()
    except UsageError as error:
        for problem in error.problems:
            assert problem.message
            assert problem.hint
            assert problem.place is not None
            assert problem.place.line is not None
            assert problem.place.column is not None
    else:
        make_plan(suite)


def assert_entries_or_usage_error(read: Callable[[], Mapping[str, object]]) -> None:
    try:
        found: object = read()
    except UsageError as error:
        found = error.problems
    assert found


def splice(text: str, start: int, length: int, new: str) -> str:
    """A text with a part of it replaced."""
    at = start % (len(text) + 1)
    return text[:at] + new + text[at + length :]


@given(st.text(alphabet=st.characters(codec="utf-8")) | st.lists(words).map(" ".join))
@example("servers: &a [*a]")
@example("? {a: b}\n: c")
@example("servers:\n\t- x")
@example("loads: {a: {open: {rate: 1e400}, for: 1s}}")
@example("seed: " + "9" * 5000)
@example("a: !!int x")
@example("<: 1")
@example("'[key]': 1")
@example("scenarios: [{<own>: 1}]")
def test_any_text(catalogue: Catalogue, text: str) -> None:
    assert_suite_or_usage_error(lambda: read_suite(text, "f.yaml", catalogue, Overrides()))


@given(trees)
def test_any_tree(catalogue: Catalogue, tree: object) -> None:
    assert_suite_or_usage_error(lambda: read_suite(json.dumps(tree), "f.yaml", catalogue, Overrides()))


@given(
    st.fixed_dictionaries(
        {"servers": trees, "scenarios": trees, "loads": trees},
        optional=dict.fromkeys(
            ("baseline", "ceiling", "warmup", "trials", "quick", "seed", "timeout", "objective"), trees
        ),
    )
)
def test_any_tree_under_the_right_keys(catalogue: Catalogue, tree: object) -> None:
    assert_suite_or_usage_error(lambda: read_suite(json.dumps(tree), "f.yaml", catalogue, Overrides()))


LARGE = """\
servers: [fam.plain, {use: fam.layered, http: 1.1}]
scenarios:
  - name: Many
    requests:
      - {weight: 3, get: "/a/{rand:1..9}", headers: {A: [b, c]}, expect: {json: {/total: 3}}}
      - {post: /b, body: "{seq}", timestamp: {pointer: /now, unit: ms}, expect: {status: 201, under_load: status}}
loads:
  deep: {closed: {users: 8, depth: 4, requests_per_connection: 9}, for: 1s, count: 5}
  thought: {closed: {users: 8, think: {exponential: 1s}}, for: 1s}
  paced: {closed: {users: 8, pace: 2/s}, for: 1s}
  ramped: {closed: {users: 0, ramp: {to: 9, over: 1s}}, for: 1s}
  staged: {open: {rate: 0, stages: [{to: 9, over: 1s}], connections: 9, connections_at_start: 1}, for: 1s}
"""


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 6), words), max_size=3))
def test_any_slip_in_a_file_with_every_word(catalogue: Catalogue, slips: list[tuple[int, int, str]]) -> None:
    text = LARGE
    for start, length, new in slips:
        text = splice(text, start, length, new)
    assert_suite_or_usage_error(lambda: read_suite(text, "f.yaml", catalogue, Overrides()))


edits = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 6), words), min_size=1, max_size=3)


@given(edits)
def test_any_slip_in_a_right_file(catalogue: Catalogue, slips: list[tuple[int, int, str]]) -> None:
    text = SUITE
    for start, length, new in slips:
        text = splice(text, start, length, new)
    assert_suite_or_usage_error(lambda: read_suite(text, "f.yaml", catalogue, Overrides()))


@given(edits)
def test_any_slip_in_a_catalogue(slips: list[tuple[int, int, str]]) -> None:
    family, scenarios = FAMILY, SCENARIOS
    for start, length, new in slips:
        family, scenarios = splice(family, start, length, new), splice(scenarios, start, length, new)
    assert_entries_or_usage_error(lambda: read_family(family, "f.yaml", "/c/fam"))
    assert_entries_or_usage_error(lambda: read_scenarios(scenarios, "f.yaml"))


@given(trees)
def test_any_tree_as_a_catalogue(tree: object) -> None:
    assert_entries_or_usage_error(lambda: read_family(json.dumps(tree), "f.yaml", "/c/fam"))
    assert_entries_or_usage_error(lambda: read_scenarios(json.dumps(tree), "f.yaml"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary())
def test_any_bytes_in_a_file(tmp_path: Path, catalogue: Catalogue, content: bytes) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    assert_suite_or_usage_error(lambda: load_suite(path, catalogue))
