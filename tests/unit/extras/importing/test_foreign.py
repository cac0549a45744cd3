"""Files of other tools, and bytes that are no text: each is refused by what it is."""

from pathlib import Path

import pytest

from redline.asking.imported import read_file
from redline.errors import UsageError
from redline.schema.document import Document
from tests.unit.extras.importing.test_importing import LOG, imported


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"info": {"_postman_id": "x"}, "item": []}', "a collection of Postman"),
        ('{"_type": "export", "__export_format": 4}', "an export of Insomnia"),
        ("import http from 'k6/http';\nexport default function () {}\n", "a script of k6"),
        ('<?xml version="1.0"?>\n<jmeterTestPlan version="1.2"/>\n', "a test plan of JMeter"),
        ("import io.gatling.core.Predef._\n", "a simulation of Gatling"),
        ("from locust import HttpUser\n", "a script of Locust"),
        ('wrk.method = "POST"\n', "a script of wrk"),
        ("config:\n  target: http://h\nscenarios:\n  - flow: []\n", "a script of Artillery"),
        ("name: a\nhttp:\n  host: http://h\nusersPerSec: 1\n", "a benchmark of Hyperfoil"),
        ("asyncapi: 2.6.0\n", "an AsyncAPI document"),
        ('Invoke-WebRequest -Uri "https://h/"\n', "a PowerShell command"),
        ('fetch("https://h/", {\n});\n', "a call of fetch()"),
        ("wget https://h/\n", "a command of wget"),
        ("http GET https://h/ X-A:b\n", "a command of HTTPie"),
        ("### items\nGET http://h/items HTTP/1.1\nAccept: a\n\n###\n", "a file of requests of an editor"),
        ("GET /items\nGET /items/1\n", "a list of paths with methods"),
        ("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n", "a certificate or a key"),
        ("[Thu Nov 26 12:00:00.1 2026] [core:error] [pid 1] AH001: x\n", "an error log of Apache"),
        ("--- a.py\n+++ b.py\n@@ -1 +1 @@\n-a\n+b\n", "a patch"),
        ("<html></html>", "a document of XML or HTML"),
        ("#Fields: date time c-ip\n2026-11-26 12:00:00 10.0.0.1\n", "a log in the W3C format without requests"),
        (
            "h haproxy[1]: 1.2.3.4:5 [06/Feb/2026:12:14:14.655] in db/srv1 0/0/5 212 -- 0/0\n",
            "a log of HAProxy without",
        ),
        (
            "tls 2.0 2026-12-20T02:59:40 net/my/50 g3d4 1.2.3.4:2 100.1.1.1:443 5 2 98 246 - arn - - -\n",
            "a log of an AWS",
        ),
    ],
)
def test_files_of_other_tools_are_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(UsageError, match="which Redline does not read") as refused:
        imported(text)
    assert f"file: this is {what}" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LOG.encode("utf-16"), "this is UTF-16 text"),
        (b"\x28\xb5\x2f\xfd" + bytes(50), "this is packed by zstd"),
        (b"BZh91AY" + bytes(50), "this is packed by bzip2"),
        (b"\xfd7zXZ\0" + bytes(50), "this is packed by xz"),
        (b"PK\x03\x04" + bytes(50), "this is packed by zip"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "this is a binary file"),
    ],
)
def test_bytes_that_are_no_text_are_named(content: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        imported(content)


def test_a_script_may_begin_with_other_lines_than_curl() -> None:
    with pytest.raises(UsageError, match="file:2: this is not a curl command"):
        imported("#!/bin/bash\nset -e\ncurl https://h/a\n")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ('[{"method": "GET", "url": "http://h/a"}]', "a list of Vegeta's targets", "jq -c '.[]'"),
        ('["http://h/a", "/b"]', "a list of URLs", "jq -r '.[]'"),
        ("- http://h/a\n- http://h/b\n", "a list of URLs", "jq -r '.[]'"),
        ('[{"request": {"method": "GET", "url": "http://h/"}, "response": {}}]', "the entries of a recording", "log"),
        ('[{"name": "a", "request": {"url": {"raw": "http://h/"}}}]', "a part of a collection of Postman", "`Code`"),
        ('[{"request_method": "GET", "uri": "/a", "status": 200}]', "an access log in a list", "jq -c"),
        ('[{"openapi": "3.1.0"}]', "a list of OpenAPI documents", "single"),
        ('[{"type": "x", "url": "http://h/", "headers": []}]', "a list of requests of another tool", "name: items"),
    ],
)
def test_a_list_of_something_else_is_named(text: str, what: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "a file.json"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_file(file)
    assert f"a file.json: this is {what}" in str(refused.value)
    assert hint in refused.value.hint
    assert "FILE" not in refused.value.hint


@pytest.mark.parametrize("text", ["- {name: a, get: /}\n", "[{name: a, get: /}]", "- {nam: a, gett: /}\n", "[[1]]"])
def test_a_list_that_may_be_of_requests_is_read_as_such(text: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(text)
    assert isinstance(read_file(tmp_path / "f"), Document)


@pytest.mark.parametrize("text", ["-H 'a: b'\n", "[info] started\n", "--verbose\n", "[section]\nkey=1\n"])
def test_a_text_that_begins_as_a_list_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="this is not a list of requests, and no other format of them"):
        imported(text)
