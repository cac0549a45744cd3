"""`redline ab` of servers that are odd: that go wrong on the way, close every connection, or tell their clock."""

import shlex
import socket
import sys
import threading
from pathlib import Path

import pytest

from redline.model import DuetRecording, Report, Series
from redline.storage.runs import RunStore
from tests.e2e.compared import answer, compared, kinds
from tests.e2e.conftest import Redline
from tests.fakes import targets
from tests.fakes.certificates import Certificate

pytestmark = pytest.mark.e2e

SHORT = ("--for", "4s")
KEEPING = Path(__file__).parents[1] / "fakes" / "servers" / "keeping.py"
PATIENCE_S = 2
"""The timeout of requests to a server that falls silent: on a busy machine right answers too take a while."""
RIGHT = 200
"""Right answers on all connections of a server before it goes wrong."""


def going_wrong(how: bytes, *, ends: bool = False) -> targets.Habit:
    """Answers right at first, then with these bytes; `ends`: and closes then. Without bytes it never answers again."""
    answered, counting = [0], threading.Lock()

    def habit(connection: socket.socket) -> None:
        while connection.recv(65536):
            with counting:
                answered[0] += 1
                is_right = answered[0] <= RIGHT
            connection.sendall(targets.ANSWER if is_right else how)
            if ends and not is_right:
                return

    return habit


CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nhi\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("how", "ends", "says"),
    [
        (
            CHUNK,
            False,
            ("malformed", "the size of a chunk is not a number in hexadecimal digits (RFC 9112, 7.1)", "0x2"),
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", True, ("closed: the connection ended after",)),
        (b"HTTP/1.1 503 Oops\r\nContent-Length: 0\r\n\r\n", False, ("unexpected status: status 503 in place of 200",)),
        (b"", False, (f"timeout: no answer within {PATIENCE_S} s",)),
    ],
    ids=["chunk", "mid-body", "status", "silent"],
)
@pytest.mark.parametrize("load", ["closed:4", pytest.param("open:400/s", marks=pytest.mark.long)])
def test_a_server_that_goes_wrong_on_the_way_is_named_with_outcome_and_rule(
    redline: Redline, load: str, how: bytes, ends: bool, says: tuple[str, ...]
) -> None:
    with targets.target(targets.healthy) as good, targets.target(going_wrong(how, ends=ends)) as bad:
        patience = () if how else ("--timeout", f"{PATIENCE_S}s")
        done = redline("ab", good, bad, *SHORT, *patience, "--load", load)
    done.refused(1, "requests to B", "failed: ", *says)
    assert done.err.count("redline:") == 1
    assert "no start with both" not in done.err + done.out


@pytest.mark.long
def test_over_tls_and_at_a_rate_it_is_named_as_well(redline: Redline, tmp_path: Path) -> None:
    certificate = Certificate(tmp_path, "DNS:localhost, IP:127.0.0.1")
    with (
        targets.target(targets.healthy, certificate.context()) as good,
        targets.target(going_wrong(CHUNK), certificate.context()) as bad,
    ):
        done = redline("ab", good, bad, *SHORT, "--load", "open:400/s", "-k")
    done.refused(1, "requests to B", "malformed: the size of a chunk")


@pytest.mark.long  # half a minute; on a busy machine a start lasts longer, and has a block after all
def test_answers_that_take_long_say_so_and_which_time_is_enough(redline: Redline, oracle: Path) -> None:
    slow = f"{oracle} fixed --delay 400ms --port {{port}}"
    done = redline("ab", slow, slow, "--for", "4s", "--load", "closed:4")
    done.refused(1, "answers take too long: until all were there, a slice lasted A 4", "hint: give --for ")


def test_no_user_waits_for_a_listen_queue_that_is_short(redline: Redline) -> None:
    """The kernel drops connections that it has no room for; their users wait for 1, 3, 7, … s in the first slice."""
    command = f"{sys.executable} {KEEPING} {{port}} nothing 2"
    compared(redline, command, command, "--load", "closed:32", keep="out")
    made = RunStore(redline.folder / "out").run().duets
    dropped = [line.values[-1] - line.values[0] for start in made for line in _drops(start)]
    assert dropped
    assert set(dropped) == {0}


def _drops(start: DuetRecording) -> list[Series]:
    return [line for own in start.server_series for line in own if line.name == "listen_drops"]


@pytest.mark.long
def test_the_http_server_of_python_gets_a_verdict(redline: Redline, tmp_path: Path) -> None:
    """It closes each connection, and its listen queue has room for six: 64 users would wait a second for their turn."""
    (tmp_path / "index.html").write_text("hi")
    command = shlex.join([sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]) + " {port}"
    done = compared(redline, command, command, lengths=("12s", "48s"))
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert answer(report).ratio is not None
    assert report.lost_starts == ()
    assert "short-queue" in kinds(report)


@pytest.mark.long
def test_one_way_times_are_measured_in_duets(redline: Redline, oracle: Path) -> None:
    for length in ("300ms", "3s"):  # a busy machine leaves short starts without an answer
        (redline.folder / "suite.yaml").write_text(
            f"""\
servers:
- {{name: A, command: '{oracle} null --server-time ns --port {{port}}'}}
- {{name: B, command: '{oracle} null --server-time ns --port {{port}}'}}
baseline: A
scenarios:
- {{name: clock, get: /, timestamp: {{pointer: body, unit: ns}}}}
loads:
  few: {{closed: {{users: 2}}, for: {length}}}
warmup: 200ms
trials: 2
design: duet
"""
        )
        done = redline("run", "suite.yaml", "--json")
        if done.code == 0:
            break
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert report.lost_starts == ()
    assert any(one.duet for one in report.comparisons)
