"""Some 300 answers, right and wrong, through `load`, `limit`, `ab` and `run`: all commands say the same of each."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Done, Redline
from tests.fakes import targets, vectors
from tests.fakes.certificates import Certificate
from tests.fakes.vectors import Vector

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ALL = list(vectors.vectors().values())
RIGHT = [vector for vector in ALL if vector.outcome == "ok"]
WRONG = [vector for vector in ALL if vector.outcome != "ok"]
ONCE = ("-c", "1", "--count", "3", "-d", "2s", "--warmup", "0s", "--timeout", "500ms", "--json")
SEARCH = ("--objective", "p99 < 1s", "-d", "200ms", "--warmup", "0s", "-c", "1", "--timeout", "500ms", "--probes", "3")
SUITE = """\
servers: [{servers}]
scenarios: [Answer]
loads: {{once: {{closed: {{users: 1}}, for: 300ms}}}}
warmup: 0s
timeout: 500ms
trials: 1
{more}
"""


def named(vector: Vector) -> str:
    return vector.name


def words(done: Done) -> str:
    """All that a command printed, however its lines are wrapped."""
    return " ".join((done.out + " " + done.err).split())


def first_failure(done: Done) -> tuple[str, str]:
    """Outcome and reason of the first failure of a load."""
    failures = done.json["traffic"]["failures"]
    return failures[0]["outcome"], failures[0]["reason"]


@pytest.fixture(scope="module")
def runs(redline: Redline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `redline run` says of a server of each wrong answer."""
    raise NotImplementedError


@pytest.mark.parametrize("vector", WRONG, ids=named)
def test_a_wrong_answer_has_one_reason(redline: Redline, runs: str, vector: Vector) -> None:
    http2 = ("--http2",) if vector.http == "2" else ()
    with targets.target(vector.serve) as url:
        load = redline("load", url, *ONCE, *http2)
        search = redline("limit", url, *SEARCH, *http2)
        duet = redline("ab", url, url, "--for", "1s") if vector.http == "1.1" else None
    outcome, reason = first_failure(load)
    assert outcome == vector.outcome
    assert load.code == 1
    assert reason in words(search)
    assert duet is None or reason in words(duet)
