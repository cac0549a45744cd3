"""Some 300 answers, right and wrong, through `load`, `limit`, `ab` and `run`: all commands give the same verdict."""

import sys
from pathlib import Path

import pytest

from redline.model import Report
from tests.e2e.conftest import CHECKOUT, Done, Redline
from tests.fakes import targets, vectors
from tests.fakes.certificates import Certificate
from tests.fakes.vectors import Vector

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ALL = list(vectors.vectors().values())
RIGHT = [vector for vector in ALL if vector.outcome == "ok"]
WRONG = [vector for vector in ALL if vector.outcome != "ok"]
LOAD = ("-c", "1", "--count", "3", "-d", "2s", "--warmup", "0s", "--timeout", "500ms", "--json")
SEARCH = ("-c", "1", "-d", "1s", "--warmup", "0s", "--timeout", "500ms", "--objective", "p99 < 400ms", "--probes", "1")
SUITE = """\
servers: [{servers}]
scenarios: [Answer]
loads: {{once: {{closed: {{users: 1}}, for: 300ms}}}}
warmup: 0s
timeout: 500ms
trials: 1
"""
FAMILY = """\
about: answers every request with one vector
runtime: python
build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}
ready: {path: /, within: 1s}
stop: {within: 1s}
servers:
"""
SERVER = """\
  {name}:
    about: {name}
    start: {{command: ['{python}', -m, tests.fakes.vectors, '{{port}}', {name}], env: {{PYTHONPATH: '{checkout}'}}}}
    http: {http}
"""


def named(vector: Vector) -> str:
    return vector.name


def words(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def said(done: Done) -> str:
    """All output of a command, without its line breaks."""
    return words(done.out + done.err)


def as_loaded(vector: Vector) -> tuple[str, ...]:
    """The flags for the vector's protocol and status."""
    return ("--status", str(vector.status), *(("--http2",) if vector.http == "2" else ()))


def turning(vector: Vector) -> targets.Habit:
    """A server that gives the vector's answer from the second on: `load` asks once before it loads."""
    return targets.turning(vector.serve, targets.speaks_http2 if vector.http == "2" else targets.healthy)


def reason_of(load: Done) -> tuple[str, str]:
    """Outcome and reason of the first failure of a load."""
    first = failures_of(load)[0]
    # The time allowed for an answer differs between loads.
    reason = "no answer within" if first["outcome"] == "timeout" else words(first["reason"])
    return first["outcome"], reason


def failures_of(load: Done) -> list[dict[str, str]]:
    """The first failure of each outcome."""
    failures: list[dict[str, str]] = load.json.get("failures", [])
    return failures


@pytest.mark.parametrize("vector", WRONG, ids=named)
def test_a_wrong_answer_has_one_reason_in_load_limit_and_ab(redline: Redline, vector: Vector) -> None:
    with targets.target(turning(vector)) as url:
        load = redline("load", url, *LOAD, *as_loaded(vector))
    with targets.target(vector.serve) as url:
        search = redline("limit", url, *SEARCH, *as_loaded(vector))
        # `ab` uses HTTP/1.1 with a running server.
        duet = redline("ab", url, url, "--for", "3s") if vector.http == "1.1" else search
    outcome, reason = reason_of(load)
    assert (load.code, outcome) == (1, vector.outcome)
    for done in (search, duet):
        assert done.code == 1, said(done)
        assert reason in said(done), reason
        # A wrong status is its own reason.
        assert outcome == "unexpected_status" or outcome in said(done)


@pytest.mark.parametrize("vector", RIGHT, ids=named)
def test_a_right_answer_is_right_in_load(redline: Redline, vector: Vector) -> None:
    with targets.target(vector.serve) as url:
        done = redline("load", url, *LOAD, *as_loaded(vector))
    load = done.json
    assert failures_of(done) == []
    assert load["counts"]["outcomes"]["ok"] == load["counts"]["due"] == 3


@pytest.mark.parametrize("vector", RIGHT[::8], ids=named)
def test_a_right_answer_is_right_in_limit_and_ab(redline: Redline, vector: Vector) -> None:
    with targets.target(vector.serve) as url:
        search = redline("limit", url, *SEARCH, "--start", "100", *as_loaded(vector))
        duet = redline("ab", url, url, "--for", "3s", "--status", str(vector.status)) if vector.http == "1.1" else None
    assert "first failure" not in said(search).lower()
    assert search.code in (0, 1), said(search)
    assert duet is None or duet.code == 0, said(duet)


@pytest.mark.parametrize("vector", ALL[::7], ids=named)
def test_an_answer_is_the_same_over_tls(redline: Redline, tmp_path: Path, vector: Vector) -> None:
    certificate = Certificate(tmp_path)
    alpn = ("h2",) if vector.http == "2" else ()
    right = vector.outcome == "ok"
    with targets.target(vector.serve if right else turning(vector)) as url:
        plain = redline("load", url, *LOAD, *as_loaded(vector))
    with targets.target(vector.serve if right else turning(vector), certificate.context(*alpn)) as url:
        secure = redline("load", url, *LOAD, *as_loaded(vector), "--insecure")
    outcomes = [] if right else [vector.outcome]
    assert [first["outcome"] for first in failures_of(plain)] == outcomes
    assert [first["reason"] for first in failures_of(plain)] == [first["reason"] for first in failures_of(secure)]


@pytest.mark.parametrize("chosen", [RIGHT, WRONG[::3], WRONG[1::3], WRONG[2::3]], ids=["right", "a", "b", "c"])
def test_a_run_says_the_same(redline: Redline, chosen: list[Vector]) -> None:
    chosen = [vector for vector in chosen if vector.status == 200]
    done = redline("run", suite_of(redline.folder, chosen), "-o", redline.folder / "out", "--json")
    report = Report.model_validate_json(done.out)
    cells = {cell.server.partition("+")[0]: cell for cell in report.cells}
    assert len(cells) == len(chosen)
    for vector in chosen:
        cell = cells[f"answers.{vector.name}"]
        found = words(" ".join(finding.message for finding in cell.findings))
        if vector.outcome == "ok":
            assert all(trial.rate_per_s for trial in cell.trials), (vector.name, found)
            continue
        with targets.target(turning(vector)) as url:
            _, reason = reason_of(redline("load", url, *LOAD, *as_loaded(vector)))
        assert reason in found, (vector.name, reason, found)


def suite_of(folder: Path, chosen: list[Vector]) -> Path:
    """A suite and a catalogue with a server for each of these vectors."""
    family = folder / "catalogue" / "answers"
    family.mkdir(parents=True)
    servers = (
        SERVER.format(
            name=vector.name, python=sys.executable, checkout=CHECKOUT, http="[2]" if vector.http == "2" else "[1.1]"
        )
        for vector in chosen
    )
    (family / "server.yaml").write_text(FAMILY + "".join(servers))
    (folder / "catalogue" / "scenarios.yaml").write_text("scenarios: {Answer: {get: /, expect: {status: 200}}}\n")
    used = ", ".join(
        f"{{use: answers.{vector.name}, http: 2}}" if vector.http == "2" else f"answers.{vector.name}"
        for vector in chosen
    )
    file = folder / "suite.yaml"
    file.write_text(SUITE.format(servers=used))
    return file
