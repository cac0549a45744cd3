"""Sign-ins by Basic, Bearer and signatures of AWS, and secrets in headers: sent to the server, and kept nowhere."""

import base64
import re
import shlex
import socket

import pytest

from redline.model import Report
from tests.e2e.conftest import Redline, for_each
from tests.e2e.test_documented_commands import SIGN_INS
from tests.e2e.test_way_in import SHORT
from tests.fakes import targets
from tests.fakes.aws import wrong_signature

pytestmark = pytest.mark.e2e
SHORT_SEARCH = ("--objective", "p99 < 1us", "-d", "1s", "--warmup", "100ms", "--start", "100", "--probes", "1")
"""No rate meets it."""

PASSWORD, TOKEN, KEY = "pa:ss {seq} w/ord", "tok.en-71f3", "key{rand:1..2}}"
BASIC = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
AUTHORIZATION = re.compile(rb"^(?:authorization|x-api-key): (.*?)\r$", re.IGNORECASE | re.MULTILINE)
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SAID: set[bytes] = set()


def listening(connection: socket.socket) -> None:
    """Answer with what a request said of its user, and remember it."""
    while request := connection.recv(65536):
        SAID.update(AUTHORIZATION.findall(request))
        connection.sendall(targets.ANSWER * request.count(b"\r\n\r\n"))


def test_sign_ins_reach_the_server_and_no_file_and_no_message(redline: Redline) -> None:
    SAID.clear()
    redline.environment |= {"SECRET_TOKEN": TOKEN, "SECRET_PASSWORD": PASSWORD, "API_KEY": KEY}
    requests = redline.folder / "list.yaml"
    requests.write_text("- {name: own, get: /, headers: {X-Api-Key: 'v1 ${API_KEY}'}}\n")
    with targets.target(listening) as a, targets.target(listening) as b:
        answers = [
            redline("load", a, "--user", f"ann:{PASSWORD}", *SHORT, "-o", "basic", "--verbose"),
            redline("load", a, "--user", "ann:${SECRET_PASSWORD}", *SHORT, "--json"),
            redline("load", a, f"--oauth2-bearer={TOKEN}", *SHORT, "-o", "bearer"),
            redline("load", a, "--oauth2-bearer", "${SECRET_TOKEN}", *SHORT, "-o", "named"),
            redline("load", a.removesuffix("path0"), "--requests", str(requests), *SHORT, "-o", "list"),
            redline("ab", a, b, "--oauth2-bearer", TOKEN, "--for", "3s", "-o", "ab", "--json"),
            redline("limit", a, "--user", f"ann:{PASSWORD}", *SHORT_SEARCH, "-o", "limit"),
        ]
    # On a busy machine so short a load is perhaps invalid, which is 1 as well; then it was measured all the same.
    for answer in (answers[0], *answers[2:5]):
        assert " ok" in answer.out, answer.err
    assert answers[1].json["answers"].keys() == {"200"}, answers[1].err
    # A comparison may find too little, and no rate meets 1 us; both have measured, the search one probe.
    assert Report.model_validate(answers[5].json).cells, answers[5].err
    assert "/s  p50 " in answers[6].err, answers[6].err
    assert {f"Basic {BASIC}".encode(), f"Bearer {TOKEN}".encode(), f"v1 {KEY}".encode()} == SAID
    kept = {file: file.read_bytes() for file in redline.folder.rglob("*") if file.is_file()}
    said = "".join(answer.out + answer.err for answer in answers).encode()
    assert any(b"${REDLINE_BASIC}" in content for content in kept.values())
    for secret in (PASSWORD, TOKEN, KEY, BASIC.rstrip("=")[:-1]):
        assert secret.encode() not in said
        assert not [file for file, content in kept.items() if secret.encode() in content]


SERVER = """\
import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer " + os.environ["SHOP_TOKEN"]
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
PROJECT = """\
start: python3 server.py {port}
env_file: .env
requests: [{name: items, get: /, auth: {bearer: "${SHOP_TOKEN}"}}]
"""
OF_SERVER = """\
servers: [{name: shop, command: 'python3 server.py {port}', env_file: .env}]
scenarios: [{name: items, get: /, auth: {bearer: "${SHOP_TOKEN}"}}]
loads: {some: {closed: {users: 2}, for: 1s}}
warmup: 200ms
trials: 1
"""


@pytest.mark.long
def test_requests_sign_in_by_the_file_of_the_server(redline: Redline) -> None:
    for name, text in {"server.py": SERVER, ".env": f"SHOP_TOKEN={TOKEN}\n", "redline.yaml": PROJECT}.items():
        (redline.folder / name).write_text(text)
    (redline.folder / "suite.yaml").write_text(OF_SERVER)
    loaded = redline("load", *SHORT, "-o", "load", "--json")
    run = redline("run", "suite.yaml", "-o", "run", "--json")
    assert loaded.json["answers"].keys() == {"200"}, loaded.err
    assert all(cell["answers"].keys() == {"200"} for cell in run.json["cells"]), run.err
    redline.environment["SHOP_TOKEN"] = "of-the-environment"
    redline("load", *SHORT).refused(1, "status 401 in place of 200")
    kept = {file: file.read_bytes() for file in redline.folder.rglob("*") if file.is_file() and file.name != ".env"}
    assert not [file for file, content in kept.items() if TOKEN.encode() in content]


def verifying(connection: socket.socket) -> None:
    """Answer what is signed with AWS_SECRET, and refuse all else with 403."""
    received = b""
    while part := connection.recv(65536):
        received += part
        while (end := received.find(b"\r\n\r\n") + 4) > 3:
            length = re.search(rb"content-length: (\d+)", received[:end], re.IGNORECASE)
            end += int(length[1]) if length else 0
            if len(received) < end:
                break
            request, received = received[:end], received[end:]
            wrong = wrong_signature(request, AWS_SECRET)
            SAID.add(wrong.encode() if wrong else request.split(b" HTTP/")[0])
            connection.sendall(targets.ANSWER.replace(b"200 OK", b"403 Forbidden") if wrong else targets.ANSWER)


@pytest.mark.long
def test_requests_are_signed_for_aws_and_the_secret_is_kept_nowhere(redline: Redline) -> None:
    SAID.clear()
    redline.environment |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": AWS_SECRET}
    requests = redline.folder / "list.yaml"
    keys = "key: '${AWS_ACCESS_KEY_ID}', secret: '${AWS_SECRET_ACCESS_KEY}', session: '${SECRET_SESSION}'"
    redline.environment["SECRET_SESSION"] = TOKEN
    auth = f"auth: {{aws: {{region: eu-central-1, service: execute-api, {keys}}}}}"
    requests.write_text(f"- {{name: get, get: '/a%20b?y=a:b&x=', {auth}}}\n- {{post: /p, json: {{a: 1}}, {auth}}}\n")
    signed = ("--aws-sigv4", "aws:amz:eu-central-1:s3")
    with targets.target(verifying) as a, targets.target(verifying) as b:
        place = a.removesuffix("path0")
        moved = f"api.example:80:{place.removeprefix('http://').rstrip('/')}"
        named = ("--user", "${AWS_ACCESS_KEY_ID}:${AWS_SECRET_ACCESS_KEY}")
        answers = [
            redline("load", a, *signed, "--user", f"AKIDEXAMPLE:{AWS_SECRET}", *SHORT, "-o", "load", "--verbose"),
            redline("load", "http://api.example/k", "--connect-to", moved, *signed, *named, "-R", "50", *SHORT),
            redline("load", place, "--requests", str(requests), *SHORT, "-o", "list"),
            redline("ab", a, b, *signed, *named, "-H", "Host: s3.example", "--for", "3s", "-o", "ab", "--json"),
            redline("limit", a, *signed, *named, *SHORT_SEARCH, "-o", "limit"),
            redline("load", a, *signed, "--user", "AKIDEXAMPLE:other", *SHORT),
        ]
    for answer in answers[:3]:
        assert " ok" in answer.out, answer.err  # perhaps on a busy machine, whose short loads are invalid
    assert Report.model_validate(answers[3].json).cells, answers[3].err
    assert "/s  p50 " in answers[4].err, answers[4].err
    answers[5].refused(1, "status 403")
    wrong = {said for said in SAID if b"another signature is right" in said}
    assert SAID - wrong == {b"GET /path0", b"GET /k", b"GET /a%20b?y=a:b&x=", b"POST /p"}
    assert all(b"'GET\\n/path0" in said for said in wrong), wrong
    said = "".join(answer.out + answer.err for answer in answers).encode()
    kept = {file: file.read_bytes() for file in redline.folder.rglob("*") if file.is_file()}
    assert any(b"${REDLINE_AWS_SECRET}" in content for content in kept.values())
    for secret in (AWS_SECRET.encode(), TOKEN.encode(), b"Signature="):
        assert secret not in said
        assert not [file for file, content in kept.items() if secret in content]


def test_the_commands_of_the_guide_sign_in(redline: Redline) -> None:
    SAID.clear()
    redline.environment |= {"TOKEN": TOKEN, "PASSWORD": PASSWORD, "API_KEY": KEY}
    redline.environment |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": AWS_SECRET}
    with targets.target(listening) as url:
        for command in SIGN_INS:
            done = redline(*shlex.split(command.replace("http://127.0.0.1:8080/items", url)), *SHORT)
            assert " ok" in done.out, done.err
    signatures = {said for said in SAID if said.startswith(b"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")}
    assert signatures
    assert {f"Basic {BASIC}".encode(), f"Bearer {TOKEN}".encode(), KEY.encode()} == SAID - signatures


WRONG_SIGN_INS = (
    (("--user", "ann"), "--user has no password"),
    (("--oauth2-bearer", ""), "--oauth2-bearer has no token"),
    (("--oauth2-bearer", "a\r\nX-Other: b"), "the header Authorization"),
    (("--user", "ann:a", "--oauth2-bearer", "b"), "--user and --oauth2-bearer are two sign-ins"),
    (("--user", "ann:a", "-H", "authorization: Basic x"), "is a sign-in of its own"),
    (("--oauth2-bearer", "${REDLINE_NO_SUCH}"), "the variable REDLINE_NO_SUCH is not set"),
    (("-H", "X-Key: ${REDLINE_NO_SUCH}"), "the header X-Key: the variable REDLINE_NO_SUCH is not set"),
    (("--requests", "x.yaml", "--user", "ann:a"), "--user"),
    (("--aws-sigv4", "aws:amz:eu-central-1:s3"), "the key and its secret are missing"),
)


@pytest.mark.parametrize(("command", "flags", "message"), for_each(("load", "ab", "limit"), WRONG_SIGN_INS))
def test_wrong_sign_ins_are_refused_before_anything_is_sent(
    redline: Redline, command: str, flags: tuple[str, ...], message: str
) -> None:
    (redline.folder / "x.yaml").write_text("- {name: own, get: /}\n")
    SAID.clear()
    with targets.target(listening) as url:
        asked = url.removesuffix("path0") if "--requests" in flags else url
        others = {"load": (), "ab": (asked,), "limit": ("--objective", "p99 < 1s")}[command]
        redline(command, asked, *others, *flags).refused(2, message)
    assert not SAID
