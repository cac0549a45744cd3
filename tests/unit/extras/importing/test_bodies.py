"""Bodies of imported requests: in chunks, after an answer 100, forms and uploads."""

from pathlib import Path
from typing import Any

import pytest

from redline.extras.importing.har_body import answer_of
from tests.unit.extras.importing.test_importing import entry, har, imported, left


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("-d a=1 -H 'Transfer-Encoding: chunked'", {"chunked": True}),
        ("-d a=1 -H 'Expect: 100-continue'", {"expect_continue": "1s"}),
        (
            "-d a=1 -H 'expect: 100-Continue' -H 'transfer-encoding: Chunked'",
            {"chunked": True, "expect_continue": "1s"},
        ),
        ("-d a=1 -H 'Expect:' -H 'Transfer-Encoding:'", {}),
    ],
)
def test_how_a_command_sends_its_body_is_kept(command: str, more: dict[str, object]) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    expected = {"name": "post-a", "post": "/a", "headers": form, "body": "a=1", **more}
    assert imported(f"curl http://h/a {command}").requests == [expected]


def test_a_command_without_a_body_has_nothing_to_send_in_chunks() -> None:
    made = imported("curl http://h/a -H 'Transfer-Encoding: chunked' -H 'Expect: 100-continue'")
    assert made.requests == [{"name": "a", "get": "/a"}]


def test_a_body_in_another_coding_is_left_out() -> None:
    made = imported("curl http://h/a\ncurl http://h/a -d a -H 'Transfer-Encoding: gzip, chunked'")
    assert left(made) == {"whose body is sent with Transfer-Encoding: gzip, chunked": 1}


def test_targets_may_send_bodies_in_chunks(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    made = imported("POST http://h/\nTransfer-Encoding: chunked\nExpect: 100-continue\n@a\n", tmp_path)
    assert made.requests[0] == {
        "name": "post", "post": "/", "body": {"file": "a"}, "chunked": True, "expect_continue": "1s"
    }  # fmt: skip


UPLOAD = (
    '--x\r\nContent-Disposition: form-data; name="note"\r\n\r\nit is {seq}\r\n'
    '--x\r\nContent-Disposition: form-data; name="photo"; filename="cat.png"\r\nContent-Type: image/png\r\n\r\n'
    "{}\r\n--x--\r\n"
)


def upload(content: str) -> dict[str, Any]:
    """A form with a file as browsers record it, with this content."""
    return {"mimeType": "multipart/form-data; boundary=x", "text": UPLOAD.replace("{}", content)}


PARAMS = {
    "mimeType": "multipart/form-data",
    "params": [
        {"name": "note", "value": "it is {seq}"},
        {"name": "photo", "fileName": "C:\\pets\\cat.png", "contentType": "image/png"},
    ],
}
NOTE = {"name": "note", "text": "it is {{seq}}"}


@pytest.mark.parametrize(
    ("posted", "photo"),
    [
        (upload(""), {"file": "cat.png", "type": "image/png"}),
        (upload("\x89PNG"), {"file": "cat.png", "type": "image/png"}),
        (PARAMS, {"file": "cat.png", "type": "image/png", "filename": "C:\\pets\\cat.png"}),
    ],
)
def test_an_upload_of_a_recording_sends_the_file_beside_it(
    posted: dict[str, Any], photo: dict[str, str], tmp_path: Path
) -> None:
    content_type = {"name": "Content-Type", "value": "multipart/form-data; boundary=x"}
    text = har(entry("http://h/up", "POST", headers=[content_type], postData=posted), entry("http://h/"))
    missing = imported(text, tmp_path)
    assert [(entry.why, entry.example) for entry in missing.left_out] == [
        ("that upload a file which is not recorded: save it beside the recording", "cat.png of POST http://h/up")
    ]
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\0")
    made = imported(text, tmp_path)
    assert made.requests[0] == {"name": "post-up", "post": "/up", "multipart": [NOTE, {"name": "photo", **photo}]}
    assert made.body_files == ("cat.png",)


def test_the_recorded_text_of_an_upload_is_sent() -> None:
    made = imported(har(entry("http://h/up", "POST", postData=upload("plain\r\ntext"))))
    assert made.requests[0]["multipart"] == [
        NOTE, {"name": "photo", "text": "plain\r\ntext", "type": "image/png", "filename": "cat.png"}
    ]  # fmt: skip


def test_a_file_is_not_read_from_elsewhere_and_a_secret_is_not_sent(tmp_path: Path) -> None:
    away = {**PARAMS, "params": [{"name": "f", "fileName": "..", "value": ""}]}
    secret = {**PARAMS, "params": [{"name": "password", "value": "x"}]}
    asked = [entry("http://h/up", "POST", postData=posted) for posted in (away, secret)]
    assert left(imported(har(*asked, entry("http://h/")), tmp_path)) == {
        "that upload a file which is not recorded: save it beside the recording": 1,
        "whose body holds a secret (`password`)": 1,
    }


def test_what_a_command_of_curl_says_beside_its_request_is_named(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text("{}")
    lines = [
        "curl -k --cacert ca.pem https://h/a",
        "curl -E me.pem --key me.key https://h/b",
        "curl https://h/c --next https://h/d -: https://h/e",
        "curl --url-query a=b https://h/f",
        "curl --variable a=b https://h/g",
        "curl --data-binary @- https://h/h",
        "curl --data-binary @missing.json https://h/i",
        "curl --data-binary @body.json https://h/j",
    ]
    made = imported("\n".join(lines), tmp_path)
    assert [request.get("get", request.get("post")) for request in made.requests] == ["/a", "/b", "/j"]
    assert made.total == 10
    said = "of curl, which is a flag of the command that loads"
    assert left(made, "secret") == {f"--{flag} {said}": 1 for flag in ("cacert", "insecure", "cert", "key")}
    whys = [(why.partition(": ")[2].partition(" has")[0], count) for why, count in left(made).items()]
    assert whys[:2] == [("curl -:", 3), ("curl --url-query", 1)]
    assert all(word in " ".join(left(made)) for word in ("--variable", "standard input", "missing.json"))


@pytest.mark.parametrize("content", [False, 3, "text", ["text"], None, {}])
def test_an_answer_whose_content_is_no_object_lacks_its_body(content: object) -> None:
    assert answer_of({"content": content}) == ("", True)
    assert answer_of({"content": {"text": ""}}) == ("", False)
