"""Requests that are signed for AWS: as published, as a server sees it, and what cannot be signed is refused."""

import datetime as dt
import re
import sys
from pathlib import Path
from typing import Any

import botocore.auth
import pytest

from redline.driving.headers import headers_of
from redline.driving.protocol import job
from redline.errors import DriveError, UsageError
from redline.model import Body, Request, Suite
from redline.model.sign_in import UNSIGNED, AwsSignIn, BasicSignIn, authority, outlives_signature
from redline.ports import Drive, Endpoint
from redline.suite import make_plan
from tests.fakes.aws import wrong_signature
from tests.fakes.catalogues import SUITE, problems_of, suite_of

AT = dt.datetime(2015, 8, 30, 12, 36, tzinfo=dt.UTC)
HOST, KEY, SECRET = "example.amazonaws.com", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwt"
    "hAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVX"
    "AkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)
AUTH = "auth: {aws: {region: us-east-1, service: service, key: '${AWS_KEY}', secret: '${AWS_SECRET}'}}"

TWO = """\
servers: [{name: A, url: http://127.0.0.1:1}, {name: B, url: http://127.0.0.1:2}]
baseline: A
scenarios: [{name: M, get: /, AUTH}]
loads: {saturate: {closed: {users: 2}, for: 1s}}
"""


@pytest.fixture(autouse=True)
def _signing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: AT)
    for name, value in {"AWS_KEY": KEY, "AWS_SECRET": SECRET, "AWS_SESSION": SESSION}.items():
        monkeypatch.setenv(name, value)


def aws(service: str = "service", **more: str) -> AwsSignIn:
    return AwsSignIn(region="us-east-1", service=service, key="${AWS_KEY}", secret="${AWS_SECRET}", **more)


# The names and signatures are those of AWS's published test suite of Signature Version 4.
@pytest.mark.parametrize(
    ("name", "given", "signed", "signature"),
    [
        ("get-vanilla", {}, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "get-vanilla-query-order-key-case",
            {"path": "/?Param2=value2&Param1=value1"},
            "",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "get-relative-relative",
            {"path": "/example1/example2/../.."},
            "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        ("post-vanilla", {"method": "POST"}, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "post-x-www-form-urlencoded",
            {
                "method": "POST",
                "headers": {"Content-Type": "application/x-www-form-urlencoded"},
                "body": Body(text="Param1=value1"),
            },
            "content-type;",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "post-header-value-case",
            {"method": "POST", "headers": {"My-Header1": "VALUE1"}},
            "my-header1;",
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
        ),
        (
            "get-header-key-duplicate",
            {"headers": {"My-Header1": ("value2", "value2", "value1")}},
            "my-header1;",
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
        ),
        (
            "post-sts-header-before",
            {"method": "POST", "auth": aws(session="${AWS_SESSION}")},
            "session",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ],
)
def test_requests_are_signed_as_published(name: str, given: dict[str, Any], signed: str, signature: str) -> None:
    signed_lines = headers_of(Request(**{"auth": aws(), **given}), HOST)
    headers = {line[0]: line[1] for line in signed_lines}
    covered = {"": "host", "session": "host", "content-type;": "content-type;host", "my-header1;": "host;my-header1"}
    token = ";x-amz-security-token" if signed == "session" else ""
    assert headers["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={KEY}/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders={covered[signed]};x-amz-date{token}, Signature={signature}"
    ), name
    assert headers["X-Amz-Date"] == "20150830T123600Z"
    assert headers["Host"] == HOST


@pytest.mark.parametrize(
    "request_",
    [
        Request(auth=aws(), path="/a%20b/c:d?x=a:b&x=&y&a=%2B%2f"),
        Request(auth=aws("s3"), path="/b/a%20b:c?list-type=2&prefix=x/y"),
        Request(auth=aws("s3"), method="PUT", path="/b/k", body=Body(size=1000), headers={"Content-MD5": "x"}),
        Request(auth=aws(), headers={"Host": "other.example", "Connection": "close", "User-Agent": "x", "X-B": "{{}}"}),
        Request(auth=aws(), method="POST", body=Body(text='{"a": 1}'), headers={"X-K": "v1 ${AWS_KEY}"}),
    ],
)
def test_a_server_finds_the_signature_right(request_: Request) -> None:
    lines = [(name, value.replace("{{", "{").replace("}}", "}")) for name, value in headers_of(request_, HOST)]
    body = b"" if request_.body is None else request_.body.content()
    head = "\r\n".join([f"{request_.method} {request_.path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines)])
    assert not wrong_signature(f"{head}\r\n\r\n".encode() + body, SECRET)
    assert wrong_signature(f"{head}\r\n\r\n".encode() + body, SECRET[::-1])
    assert wrong_signature(f"{head}\r\n\r\n".encode() + body + b"x", SECRET)
    assert wrong_signature(re.sub(r"(?im)^(host: .*?)\r$", "\\1.org\r", f"{head}\r\n\r\n").encode() + body, SECRET)


def test_what_is_not_signed_may_vary() -> None:
    assert set(botocore.auth.SIGNED_HEADERS_BLACKLIST) >= UNSIGNED
    request = Request(auth=aws(), headers={"User-Agent": "{seq}"})
    assert ["User-Agent", "{seq}"] in headers_of(request, HOST)


def test_basic_is_a_header_and_no_braces_in_it_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "open sesame")
    request = Request(auth=BasicSignIn(user="Aladdin", password="${PASSWORD}"))
    assert headers_of(request, HOST) == [["Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]]


def test_what_is_stored_has_no_secret_and_no_signature(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SUITE.replace("[Get]", f"[{{name: M, get: /, {AUTH}}}]"))
    stored = suite.model_dump_json()
    assert "${AWS_SECRET}" in stored
    assert SECRET not in stored
    assert "Signature" not in stored
    assert Suite.model_validate_json(stored) == suite


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("get: '/{seq}', AUTH", "its path has a placeholder"),
        ("get: '/a?b=c+d', AUTH", "a `+` in a query"),
        ("post: /, body: 'x{rand:1..2}', AUTH", "its body has a placeholder"),
        ("post: /, json: {a: '{seq}'}, AUTH", "its body has a placeholder"),
        ("get: /, headers: {X-N: ['a', '{seq}']}, AUTH", "the header `X-N` has a placeholder"),
        ("get: /, headers: {x-amz-date: x}, AUTH", "signing sets the header `x-amz-date`"),
        ("get: /, headers: {authorization: x}, AUTH", "are two sign-ins"),
        ("get: /, auth: {basic: {user: a, password: b}}", "a secret does not belong in a file"),
        ("get: /, auth: {bearer: abc}", "a secret does not belong in a file"),
        ("get: /, auth: {}", "has nothing to sign in with"),
        ("requests: [{get: /}], AUTH", "`auth` cannot be combined with `requests`"),
        (
            "journey: {steps: [{get: /, take: {t: {header: X}}}, {get: '/{take:t}', AUTH}]}",
            "its path has a placeholder",
        ),
        ("journey: {steps: [{get: /, headers: {Cookie: a=b}, AUTH}]}", "cookies of a user would change"),
    ],
)
def test_what_cannot_be_signed_is_refused(tmp_path: Path, written: str, says: str) -> None:
    written = written.replace("AUTH", AUTH)
    problems = problems_of(tmp_path, SUITE.replace("[Get]", f"[{{name: M, {written}}}]"))
    assert any(says in problem.message for problem in problems), problems


def test_a_load_that_outlives_its_signatures_is_refused(tmp_path: Path) -> None:
    written = SUITE.replace("[Get]", f"[{{name: M, get: /, {AUTH}}}]").replace("for: 1s", "for: 16m")
    assert "16m" in written
    with pytest.raises(UsageError, match="takes a signature for 15 minutes"):
        suite_of(tmp_path, written)
    assert not outlives_signature(15 * 60 * 10**9)
    made = suite_of(tmp_path, written.replace("16m", "14m"))
    (cell, *_) = make_plan(made).cells.values()
    longer = cell.model_copy(update={"warmup_ns": 2 * 60 * 10**9})
    drive = Drive(cell=longer, endpoint=Endpoint("127.0.0.1", 1), seed=1, cpus=(), workers=1, log=tmp_path)
    with pytest.raises(DriveError, match="takes a signature for 15 minutes"):
        job(drive)


@pytest.mark.parametrize("servers", [TWO, TWO.replace("url: http://127.0.0.1:2", "command: './b --port {port}'")])
def test_a_duet_of_several_hosts_has_to_say_which_is_signed(tmp_path: Path, servers: str) -> None:
    with pytest.raises(UsageError, match="signed for one Host, and in a duet several servers get it"):
        suite_of(tmp_path, servers.replace("AUTH", AUTH))
    with_host = servers.replace("AUTH", f"headers: {{Host: a.example}}, {AUTH}")
    assert suite_of(tmp_path, with_host).design == "duet"
    apart = servers.replace("AUTH", AUTH) + "design: interleaved\n"
    assert suite_of(tmp_path, apart).design == "interleaved"


def test_a_token_taken_from_an_answer_is_no_secret_of_the_file(tmp_path: Path) -> None:
    steps = "[{get: /, take: {t: {header: X}}}, {get: /b, auth: {bearer: '{take:t}'}}]"
    made = suite_of(tmp_path, SUITE.replace("[Get]", f"[{{name: M, journey: {{steps: {steps}}}}}]")).scenarios[0]
    assert made.requests[1].headers == {"Authorization": "Bearer {take:t}"}


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    with pytest.raises(UsageError) as caught:
        headers_of(Request(auth=aws()), HOST)
    assert "botocore" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "port", "tls", "said"),
    [
        ("a.example", 80, False, "a.example"),
        ("a.example", 443, False, "a.example:443"),
        ("a.example", 443, True, "a.example"),
        ("fe80::1%lo", 8080, False, "[fe80::1]:8080"),
    ],
)
def test_the_host_is_what_the_engine_sends(host: str, port: int, tls: bool, said: str) -> None:
    assert authority(host, port, tls=tls) == said
