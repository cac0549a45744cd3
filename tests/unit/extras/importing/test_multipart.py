"""`multipart` of requests: the parts of a form, with texts, files and placeholders."""

from pathlib import Path

import pytest

from redline.errors import Problem, UsageError
from redline.model import Request
from redline.schema.document import parse_document
from redline.suite import load_catalogue, load_suite
from redline.suite.validate.referenced_files import with_files
from tests.fakes.catalogues import SUITE, suite_of, write_catalogue

JPEG = b"\xff\xd8\0cat"
FILE = 'Content-Disposition: form-data; name="file"; filename="notes.txt"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cat.jpg").write_bytes(JPEG)
    (tmp_path / "notes.txt").write_text("é {seq}\n")
    return tmp_path


def request_of(folder: Path, parts: str, more: str = "") -> Request:
    return (
        suite_of(folder, SUITE.replace("[Get]", f"[{{name: M, post: /up, multipart: {parts}{more}}}]"))
        .scenarios[0]
        .request
    )


def problem_of(folder: Path, parts: str, more: str = "") -> Problem:
    with pytest.raises(UsageError) as refused:
        request_of(folder, parts, more)
    (problem,) = refused.value.problems
    assert problem.hint
    assert problem.place is not None
    return problem


def test_texts_are_a_template_and_files_are_sent_as_they_are(folder: Path) -> None:
    request = request_of(
        folder, "[{name: note, text: 'n {seq}'}, {name: file, file: notes.txt}, {name: pieces, text: 7}]"
    )
    kind = request.headers["Content-Type"]
    assert isinstance(kind, str)
    boundary = kind.removeprefix("multipart/form-data; boundary=")
    assert request.body is not None
    assert request.body.text is not None
    assert request.body.text.split(f"--{boundary}") == [
        "",
        '\r\nContent-Disposition: form-data; name="note"\r\n\r\nn {seq}\r\n',
        f"\r\n{FILE}\r\nContent-Type: text/plain\r\n\r\né {{{{seq}}}}\n\r\n",
        '\r\nContent-Disposition: form-data; name="pieces"\r\n\r\n7\r\n',
        "--\r\n",
    ]


def test_a_file_of_bytes_makes_bytes_of_the_whole(folder: Path) -> None:
    parts = "[{name: '{{seq}}', text: '{{seq}}'}, {name: photo, file: cat.jpg}]"
    body = request_of(folder, parts).body
    assert body is not None
    assert body.raw is not None
    assert b'name="{seq}"\r\n\r\n{seq}\r\n' in body.raw
    assert b'name="photo"; filename="cat.jpg"\r\nContent-Type: image/jpeg\r\n\r\n' + JPEG + b"\r\n--" in body.raw


@pytest.mark.parametrize(
    ("part", "head"),
    [
        (
            "{name: a, file: cat.jpg, type: image/x, filename: b.bin}",
            'name="a"; filename="b.bin"\r\nContent-Type: image/x',
        ),
        ("{name: a, file: data}", 'name="a"; filename="data"\r\nContent-Type: application/octet-stream'),
        ("{name: a, file: data, filename: x.png}", 'name="a"; filename="x.png"\r\nContent-Type: image/png'),
        ("{name: a, text: x, filename: x.html}", 'name="a"; filename="x.html"\r\nContent-Type: text/html'),
        ("{name: 'a\"b', text: true, type: text/x}", 'name="a%22b"\r\nContent-Type: text/x'),
    ],
)
def test_types_and_file_names_are_those_that_curl_gives(folder: Path, part: str, head: str) -> None:
    (folder / "data").write_bytes(b"1;2")
    body = request_of(folder, f"[{part}]").body
    assert body is not None
    assert f"Content-Disposition: form-data; {head}\r\n\r\n".encode() in body.content()


def test_the_same_parts_have_the_same_boundary(folder: Path) -> None:
    parts = "[{name: note, text: a}]"
    assert request_of(folder, parts) == request_of(folder, parts)
    assert request_of(folder, parts).headers != request_of(folder, "[{name: note, text: b}]").headers


@pytest.mark.parametrize(
    ("parts", "field", "says"),
    [
        ("[]", "multipart", "at least 1"),
        ("[{name: a}]", "multipart[0]", "neither a text nor a file"),
        ("[{name: a, text: b, file: cat.jpg}]", "multipart[0]", "both a text and a file"),
        ("[{text: b}]", "multipart[0].name", "missing"),
        ("[{name: '', text: b}]", "multipart[0].name", "empty text"),
        ("[{name: a, text: [b]}]", "multipart[0].text", "is a text or a number"),
        ("[{name: a, text: '{rand:2..1}'}]", "multipart[0].text", "cannot be filled in"),
        ("[{name: '{seq}', text: b}]", "multipart[0].name", "placeholders stand in the `text`"),
        ("[{name: a, text: b, filename: '{seq}'}]", "multipart[0].filename", "placeholders stand in the `text`"),
        (
            "[{name: a, text: b, type: 'a\\r\\nX: y'}]".replace("'a", '"a').replace("y'", 'y"'),
            "multipart[0].type",
            "one line",
        ),
        ("[{name: a, file: none.txt}]", "multipart[0].file", "none.txt"),
        ("[{name: a, file: ../secret}]", "multipart[0].file", "leads out of the folder"),
        ("[{name: a, text: '{seq}'}, {name: b, file: cat.jpg}]", "multipart", "cat.jpg is not text"),
        ("[{name: a, nmae: b}]", "multipart[0].nmae", ""),
    ],
)
def test_what_cannot_be_sent_is_refused_at_its_place(folder: Path, parts: str, field: str, says: str) -> None:
    problem = problem_of(folder, parts)
    assert problem.place is not None
    assert problem.place.field == f"scenarios[0].{field}"
    assert says in problem.message


def test_a_body_is_given_in_one_way(folder: Path) -> None:
    part = "[{name: a, text: b}]"
    assert "`body` and `multipart`" in problem_of(folder, part, ", body: x").message
    assert "sets Content-Type" in problem_of(folder, part, ", headers: {content-type: multipart/mixed}").message


def test_parts_together_are_at_most_64_mib(folder: Path) -> None:
    with (folder / "large").open("wb") as large:
        large.truncate(40 * 1024 * 1024)
    problem = problem_of(folder, "[{name: a, file: large}, {name: b, file: large}]")
    assert "at most 64 MiB" in problem.message


def test_files_of_parts_are_renamed_with_those_of_bodies() -> None:
    text = "- {name: a, post: /, multipart: [{name: b, file: c}]}\n- {name: d, post: /, body: {file: e}}\n"
    value = with_files(parse_document(text, "list.yaml"), lambda name: f"in/{name}").value
    assert value == [
        {"name": "a", "post": "/", "multipart": [{"name": "b", "file": "in/c"}]},
        {"name": "d", "post": "/", "body": {"file": "in/e"}},
    ]


def test_steps_fill_texts_in(folder: Path) -> None:
    journey = (
        "{steps: [{name: a, get: /, take: {id: {json: /id}}},"
        " {name: b, post: /up, multipart: [{name: id, text: '{take:id}'}]}]}"
    )
    file = folder / "some.yaml"
    file.write_text(SUITE.replace("[Get]", f"[{{name: M, journey: {journey}}}]"))
    suite = load_suite(file, load_catalogue(write_catalogue(folder / "elsewhere")))
    body = suite.scenarios[0].requests[1].body
    assert body is not None
    assert body.text is not None
    assert "\r\n\r\n{take:id}\r\n" in body.text
