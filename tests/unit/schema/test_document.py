"""YAML is read as YAML 1.2, with the place of every value, and errors of form are reported once and clearly."""

import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import Location, UsageError
from redline.schema import yaml_text
from redline.schema.document import Document, parse_document

ROOT = Path(__file__).parents[3]
PIECES = [
    *(
        "a: 1",
        "- b",
        "{a: 1, b: [c, d]}",
        "'q'",
        '"x\\n"',
        "|\n  t\n",
        ">-\n a\n b\n",
        "? k\n: v",
        "&x a",
        "*x",
        "!t v",
        "# c",
    ),
    *(
        "null",
        "~",
        "0x1F",
        "0o7",
        "1_0",
        "1.5e3",
        "-.INF",
        "+1",
        "08",
        "2001-01-01",
        "<<: {a: 1}",
        "=",
        "a:b",
        '{"a":1}',
        "%",
    ),
    *(
        "\n",
        "\r\n",
        " ",
        "\n  ",
        "\t",
        "---\n",
        "...\n",
        ": ",
        "-",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\\",
        "@",
        "é",
        "\u2028",
        "\x85",
        "\0",
    ),
]


def by_ruamel(text: str) -> Document:
    with patch.object(yaml_text, "_NOT_FOR_LIBYAML", re.compile("")):
        return parse_document(text, "f")


def problem_of(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_document(text, "f.yaml")
    return str(caught.value)


def test_values_are_those_of_yaml_1_2() -> None:
    text = "{a: on, b: yes, c: true, d: 1_000, e: 0x1f, f: 0o17, g: 012, h: 1e3, i: 1:30, j: 2001-01-01, k: ~, l: '5'}"
    assert parse_document(text, "f").value == {
        "a": "on",
        "b": "yes",
        "c": True,
        "d": 1000,
        "e": 31,
        "f": 15,
        "g": 12,
        "h": 1000.0,
        "i": "1:30",
        "j": "2001-01-01",
        "k": None,
        "l": "5",
    }


def outcome(read: Callable[[str], Document], text: str) -> str:
    """The values and where their keys stand, or what is wrong. Where a value that is not written stands, differs."""
    try:
        document = read(text)
    except UsageError as error:
        return str(error)
    return repr((document.value, document.keys))


@pytest.mark.parametrize("read", [lambda text: parse_document(text, "f"), by_ruamel], ids=["libyaml", "ruamel"])
def test_a_folded_text_has_a_space_for_each_line_that_ends(read: Callable[[str], Document]) -> None:
    assert read("run: >-\n  cargo build\n  --release\n").value == {"run": "cargo build --release"}


def test_without_libyaml_a_file_is_read_all_the_same() -> None:
    with patch.object(yaml_text, "_loader", side_effect=ImportError):
        assert parse_document("{a: on, b: [1]}", "f").value == {"a": "on", "b": [1]}


def test_both_readers_see_the_same_in_every_file() -> None:
    files = [file for folder in ("catalogue", "suites", "docs/guide") for file in (ROOT / folder).rglob("*.yaml")]
    assert len(files) > 40
    for file in (file for file in files if "node_modules" not in file.parts):
        text = file.read_text()
        read, known = parse_document(text, "f"), by_ruamel(text)
        assert (read.value, read.keys) == (known.value, known.keys), file


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_what_libyaml_reads_is_what_ruamel_reads(text: str) -> None:
    read, known = (outcome(reader, text) for reader in (lambda text: parse_document(text, "f"), by_ruamel))
    assert read == known or (" has no meaning here" in read and " has no meaning here" in known)


def test_a_file_that_says_yaml_1_1_means_its_words_all_the_same() -> None:
    assert parse_document("%YAML 1.1\n---\n{a: on, b: no}", "f").value == {"a": "on", "b": "no"}


def test_every_value_and_key_has_its_place() -> None:
    document = parse_document("a:\n  - b: 1\n    long: [x,\n      y]\n", "f.yaml")
    assert document.place(("a", 0, "b")) == Location("f.yaml", 2, 8, "a[0].b")
    assert document.place(("a", 0, "b"), key=True) == Location("f.yaml", 2, 5, "a[0].b")
    assert document.place(("a", 0, "long", 1)) == Location("f.yaml", 4, 7, "a[0].long[1]")


def test_what_is_not_written_is_placed_at_what_it_is_missing_from() -> None:
    document = parse_document("a:\n  b: {c: 1}\n", "f.yaml")
    assert document.place(("a", "b", "missing", "deep")) == Location("f.yaml", 2, 3, "a.b.missing.deep")
    assert document.place(("other",)) == Location("f.yaml", 1, 1, "other")


def test_aliases_are_followed() -> None:
    assert parse_document("a: &x [1]\nb: *x\n", "f").value == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "f.yaml:1:1", "the file is empty"),
        ("# only a comment\n", "f.yaml:1:1", "the file is empty"),
        ("a:\n\tb: 1\n", "f.yaml:2:1", "indent with spaces"),
        ("a: b: c\n", "f.yaml:1:5", "quote a text that holds a colon"),
        ("a: 'x\n", "f.yaml:2:1", "close the quote"),
        ("a: @x\n", "f.yaml:1:4", "quote a text"),
        ("a: [1, 2\n", "f.yaml:2:1", "check the indentation, brackets"),
        ("a: *nobody\n", "f.yaml:1:4", "undefined alias"),
        ("a: 1\n---\nb: 1\n", "f.yaml:2:1", "one file holds one document"),
        ("x: 1\na: \x00\n", "f.yaml:2:4", "control character"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a", "is given twice, first in line 1"),
        ("? [a]\n: 1\n", "f.yaml:1:3", "a key has to be a word"),
        ("a: !mine 1\n", "f.yaml:1:4: a", "no meaning here"),
        ("a: !!set {x, y}\n", "f.yaml:1:4: a", "no meaning here"),
        ("a: &x [*x]\n", "f.yaml:1:4: a[0]", "contains itself"),
        (r'a: ["x\udcff"]', "f.yaml:1:5: a[0]", "does not stand for a character"),
        (r'"\ud83d\ude00": 1', "f.yaml:1:1", "does not stand for a character"),
        ("- " * 3000, "f.yaml:1:1", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(text: str, place: str, says: str) -> None:
    problem = problem_of(text)
    assert problem.startswith(place)
    assert says in problem


def test_all_duplicate_keys_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_document("a: 1\na: 2\nb: {c: 1, c: 2}\n", "f.yaml")
    assert [problem.place and problem.place.field for problem in caught.value.problems] == ["a", "b.c"]


def test_aliases_cannot_grow_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases counted" in problem_of("\n".join(lines))
