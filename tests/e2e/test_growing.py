"""Running servers whose cost of a request grows with what they have served, or with rows that requests add."""

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.model import Report, Verdict
from redline.storage.runs import RunStore
from tests.e2e.compared import answer, compared, duet, kinds
from tests.e2e.conftest import Redline
from tests.fakes.servers import growing
from tests.fakes.servers.owned import free_port

pytestmark = pytest.mark.e2e

KIND = "slows-as-it-serves"
USERS = ("--load", "closed:2")


@contextmanager
def server(base_us: float, per_1000_us: float, what: str) -> Iterator[str]:
    """A growing server, and its URL."""
    port = free_port("127.0.0.1")
    command = [sys.executable, growing.__file__, str(port), str(base_us), str(per_1000_us), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it listens
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.mark.long
def test_the_dearer_of_two_that_grow_is_not_called_cheaper(redline: Redline, tmp_path: Path) -> None:
    """B costs twice as much as A after any number of requests, and both cost several times as much in the end."""
    with server(100, 100, "served") as a, server(200, 200, "served") as b:
        done = compared(redline, a, b, *USERS, lengths=("15s", "30s"), keep="kept")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert answer(report).verdict is not Verdict.FASTER
    assert KIND in kinds(report)
    assert "cold" not in kinds(report)
    (made,) = RunStore(tmp_path / "kept").duets()
    assert made.traffic is not None
    slices = Counter(slice_.target for block in made.traffic.blocks for slice_ in block.slices)
    assert slices[0] == slices[2]
    assert slices[0] + slices[2] == slices[1]


@pytest.mark.long
def test_a_mix_that_adds_rows_is_said_to_change_its_server(redline: Redline, tmp_path: Path) -> None:
    requests = tmp_path / "requests.yaml"
    requests.write_text("- {name: list, get: /rows, weight: 3}\n- {name: add, post: /rows}\n")
    with server(100, 400, "rows") as a, server(100, 400, "rows") as b:
        done = redline("ab", a, b, "--requests", str(requests), "-m", "mix", *USERS, "--for", "24s", "--json")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    (said,) = (finding for finding in duet(report).findings if finding.kind == KIND)
    assert "add may write what makes later ones dearer." in said.message


@pytest.mark.alone
def test_a_trial_says_by_how_much_its_requests_get_dearer(redline: Redline, tmp_path: Path) -> None:
    command = shlex.join([sys.executable, growing.__file__, "{port}", "100", "100", "served"])
    suite = {
        "servers": [{"name": "grows", "command": command}],
        "scenarios": [{"name": "rows", "get": "/rows"}],
        "loads": {"load": {"closed": {"users": 2}, "for": "4s"}},
        "warmup": "200ms",
        "trials": 1,
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(suite))
    done = redline("run", tmp_path / "mine.yaml", "-o", tmp_path / "run", "--json")
    (cell,) = Report.model_validate(done.json).cells
    said = {finding.kind: finding.message for finding in cell.findings}
    assert " µs of CPU per 1,000 requests, " in said[KIND]
    assert "unsteady" not in said
