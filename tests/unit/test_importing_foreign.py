"""Files of other tools, and bytes that are no text: each is refused by what it is."""

import pytest

from redline.errors import UsageError
from tests.unit.test_importing import LOG, imported


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
        ("<html></html>", "a document of XML or HTML"),
        ("#Fields: date time\n2026-11-26 12:00:00 GET /a\n", "a log in the W3C format"),
        ('Feb  6 12:14:14 h haproxy[1]: 1.2.3.4:5 [06/Feb/2009:12:14:14.655] "GET / HTTP/1.1"\n', "a log of HAProxy"),
        ('INFO:     127.0.0.1:5 - "GET / HTTP/1.1" 200 OK\n', "a log of Uvicorn"),
        ('http 2018-07-02T22:23:00.186641Z app/my/50 1.2.3.4:2 "GET http://h/ HTTP/1.1"\n', "a log of an AWS"),
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
