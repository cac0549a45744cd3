"""Sign-ins by Basic and Bearer, and secrets in headers: sent to the server, and kept nowhere."""

import base64
import re
import shlex
import socket

import pytest

from redline.model import Report
from tests.e2e.conftest import Redline
from tests.e2e.test_documented_commands import SIGN_INS
from tests.e2e.test_way_in import SHORT
from tests.fakes import targets

pytestmark = pytest.mark.e2e

PASSWORD, TOKEN, KEY = "pa:ss {seq} w/ord", "tok.en-71f3", "key{rand:1..2}}"
BASIC = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
AUTHORIZATION = re.compile(rb"^(?:authorization|x-api-key): (.*?)\r$", re.IGNORECASE | re.MULTILINE)
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
            redline("limit", a, "--user", f"ann:{PASSWORD}", "--objective", "p99 < 1us", "-o", "limit"),
        ]
    # A comparison may find too little, and no rate meets 1 us; both have measured.
    assert [answer.code for answer in answers[:5]] == [0] * 5, [answer.err for answer in answers]
    assert Report.model_validate(answers[5].json).cells, answers[5].err
    assert "nothing passed" in answers[6].out + answers[6].err, answers[6].err
    assert {f"Basic {BASIC}".encode(), f"Bearer {TOKEN}".encode(), f"v1 {KEY}".encode()} == SAID
    kept = {file: file.read_bytes() for file in redline.folder.rglob("*") if file.is_file()}
    said = "".join(answer.out + answer.err for answer in answers).encode()
    assert any(b"${REDLINE_BASIC}" in content for content in kept.values())
    for secret in (PASSWORD, TOKEN, KEY, BASIC.rstrip("=")[:-1]):
        assert secret.encode() not in said
        assert not [file for file, content in kept.items() if secret.encode() in content]


def test_the_commands_of_the_guide_sign_in(redline: Redline) -> None:
    SAID.clear()
    redline.environment |= {"TOKEN": TOKEN, "PASSWORD": PASSWORD, "API_KEY": KEY}
    with targets.target(listening) as url:
        for command in SIGN_INS:
            done = redline(*shlex.split(command.replace("http://127.0.0.1:8080/items", url)), *SHORT)
            assert done.code == 0, done.err
    assert {f"Basic {BASIC}".encode(), f"Bearer {TOKEN}".encode(), KEY.encode()} == SAID


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--user", "ann"), "--user has no password"),
        (("--oauth2-bearer", ""), "--oauth2-bearer has no token"),
        (("--oauth2-bearer", "a\r\nX-Other: b"), "the header Authorization"),
        (("--user", "ann:a", "--oauth2-bearer", "b"), "--user and --oauth2-bearer are two sign-ins"),
        (("--user", "ann:a", "-H", "authorization: Basic x"), "is a sign-in of its own"),
        (("--oauth2-bearer", "${REDLINE_NO_SUCH}"), "the variable REDLINE_NO_SUCH is not set"),
        (("-H", "X-Key: ${REDLINE_NO_SUCH}"), "the header X-Key: the variable REDLINE_NO_SUCH is not set"),
        (("--requests", "x.yaml", "--user", "ann:a"), "--user"),
    ],
)
@pytest.mark.parametrize("command", ["load", "ab", "limit"])
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
