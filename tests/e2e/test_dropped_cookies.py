"""A journey whose login sets a cookie that browsers drop: every command names it in the check before the load."""

import re
import socket
from pathlib import Path

import pytest

import redline as api
from redline.errors import RedlineError
from redline.suite.urls import base_of
from tests.e2e.conftest import Done, Redline
from tests.fakes import targets
from tests.fakes.certificates import Certificate

pytestmark = pytest.mark.e2e

JOURNEY = """\
journey:
  steps:
    - {name: log in, get: /auth/login}
    - {name: profile, get: /profile}
"""
OTHER = "sid=1; Path=/; Domain=example.org"
SAID = "the cookie `sid` of step 1 was dropped, as browsers do: its Domain is example.org, and the host is 127.0.0.1"
QUICK = ("-d", "200ms", "-c", "1")


def site(cookie: str) -> targets.Habit:
    """A habit: `/auth/login` sets a cookie, and the other paths answer 401 without it."""

    def answer(connection: socket.socket) -> None:
        while asked := connection.recv(65536).decode():
            is_login, has_cookie = "/login" in asked.split()[1], re.search(r"(?im)^cookie:", asked)
            head = f"Set-Cookie: {cookie}\r\n" if is_login else ""
            status = 200 if is_login or has_cookie else 401
            connection.sendall(f"HTTP/1.1 {status} X\r\n{head}Content-Length: 0\r\n\r\n".encode())

    return answer


def told(done: Done) -> str:
    """What a command printed, on one line."""
    return " ".join((done.out + done.err).split())


@pytest.fixture
def steps(tmp_path: Path) -> str:
    (tmp_path / "steps.yaml").write_text(JOURNEY)
    return str(tmp_path / "steps.yaml")


@pytest.mark.parametrize(
    ("cookie", "says"),
    [
        (OTHER, SAID),
        (
            "__Host-sid=1; Path=/auth",
            "the cookie `__Host-sid` of step 1 was dropped, as browsers do: a name with __Host-",
        ),
        ("sid=1; Path=/; Max-Age=0", "the cookie `sid` of step 1 was dropped, as browsers do: it had expired when it"),
        (
            f"sid={'x' * 4097}; Path=/",
            "the cookie `sid` of step 1 was dropped, as browsers do: its name and value have",
        ),
        ("sid=1", "the cookie `sid` was not sent, as browsers do: its path is /auth"),
    ],
)
def test_the_check_names_the_cookie_and_why(cookie: str, says: str, redline: Redline, steps: str) -> None:
    with targets.target(site(cookie)) as url:
        done = redline("load", base_of(url), "--requests", steps, *QUICK)
    assert done.code == 1
    assert f"step `profile`, GET /profile: status 401 in place of 200, body ''; {says}" in told(done)


@pytest.mark.parametrize(
    ("cookie", "says"),
    [
        ("sid=1; Path=/; Domain=co.uk", "its Domain co.uk is a public suffix"),
        ("sid=1; Path=/; Secure", "it is Secure, and the connection is neither TLS nor to this machine by its name"),
    ],
)
def test_what_depends_on_the_hosts_name(cookie: str, says: str, redline: Redline, steps: str) -> None:
    with targets.target(site(cookie)) as url:
        address = base_of(url).removeprefix("http://").rstrip("/")
        done = redline("load", "http://shop.co.uk/", "--connect-to", f"::{address}", "--requests", steps, *QUICK)
    assert f"the cookie `sid` of step 1 was dropped, as browsers do: {says}" in told(done)


@pytest.mark.long
def test_every_command_names_it(redline: Redline, steps: str, tmp_path: Path) -> None:
    certificate = Certificate(tmp_path)
    with targets.target(site(OTHER)) as url, targets.target(site(OTHER), certificate.context()) as over_tls:
        base = base_of(url)
        suite = tmp_path / "suite.yaml"
        suite.write_text(
            f"servers:\n  - {{name: shop, url: {base}}}\n  - {{name: other, url: {base}}}\n"
            "scenarios:\n  - name: Steps\n    journey: {steps: [{name: a, get: /auth/login}, {name: b, get: /me}]}\n"
            "loads: {closed: {closed: {users: 1}, for: 200ms}}\n"
        )
        for command in (
            ("load", base_of(over_tls), "-k", "--requests", steps, *QUICK),
            ("limit", base, "--requests", steps, "--objective", "p99 < 1s", "-d", "1s"),
            ("ab", base, base, "--requests", steps, "--for", "3s"),
            ("run", str(suite), "-o", str(tmp_path / "run")),
        ):
            done = redline(*command)
            assert done.code != 0, done.out
            assert SAID in told(done), (command, done.out, done.err)
        with pytest.raises(RedlineError) as raised:
            api.load(base, requests=steps, duration="200ms", users=1)
    assert SAID in str(raised.value)
