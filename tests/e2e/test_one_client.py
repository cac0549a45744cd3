"""An answer has the same verdict in every command: `load`, `limit`, `ab` and `run` share an HTTP client."""

import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from redline.launching.process import free_port
from tests.e2e.compared import compared
from tests.e2e.conftest import Redline
from tests.e2e.preloaded import HASTY
from tests.fakes.asking import request_status
from tests.fakes.certificates import Certificate
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "answers.py"
SHORT = ("-c", "1", "-d", "300ms", "--warmup", "100ms")
SHORT_SEARCH = ("--objective", "p99 < 4s", "-c", "1", "-d", "1s", "--warmup", "0s", "--start", "100", "--probes", "1")
AUTHORIZATION = "Authorization: Bearer key"


@dataclass(frozen=True)
class Case:
    """A request and its verdict: `wrong` is the reason that all commands give, empty if the answer is right."""

    path: str
    wrong: str = ""
    status: int = 200
    method: str = "GET"
    header: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}{'+header' if self.header else ''}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The verdicts of the commands that take a URL."""
        header = ("-H", self.header) if self.header else ()
        return ("--status", str(self.status), *header)

    @property
    def scenario(self) -> dict[str, Any]:
        """The verdict in a suite."""
        name, _, value = self.header.partition(": ")
        headers = {"headers": {name: value}} if self.header else {}
        return {self.method.lower(): self.path, "expect": {"status": self.status}, **headers}


RIGHT = (
    Case("/hints"),
    Case("/interim"),
    Case("/empty", status=204),
    Case("/unchanged", status=304),
    Case("/trailers"),
    Case("/closing"),
    Case("/headers"),
    Case("/headers", method="HEAD"),
    Case("/huge"),
    Case("/auth", header=AUTHORIZATION),
    Case("/auth", status=401),
)
WRONG = (
    Case("/open", "timeout: no whole answer within"),
    Case("/more-headers", "headers"),
    Case("/auth", "status 401 in place of 200"),
    Case("/space", "malformed: "),
    Case("/twice", "malformed: "),
    Case("/signed", "malformed: "),
)
_QUICK = ("/hints", "/space")
"""An answer that is right and one that is wrong: a run has all others, by the same client."""
BY_GET = [
    pytest.param(case, id=str(case), marks=[] if case.path in _QUICK else [pytest.mark.long])
    for case in (*RIGHT, *WRONG)
    if case.method == "GET"
]


def over_each(cases: Sequence[Case], plain: Sequence[str] = _QUICK) -> list[Any]:
    """The cases in the clear and over TLS, all but some paths among the long tests: the same code reads them all."""
    quick = {"plain": plain, "tls": _QUICK}
    return [
        pytest.param(over, case, id=f"{over}-{case}", marks=[] if case.path in paths else [pytest.mark.long])
        for over, paths in quick.items()
        for case in cases
    ]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("certificate"))


@contextlib.contextmanager
def served(*files: Path) -> Iterator[str]:
    """The server, as the beginning of its URLs."""
    port = free_port()
    with subprocess.Popen([sys.executable, "-I", "-S", str(SERVER), str(port), *map(str, files)]) as process:
        try:
            assert eventually(lambda: request_status("127.0.0.1", port) != "ConnectionRefusedError")
            yield f"{'https' if files else 'http'}://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, certificate: Certificate) -> Iterator[str]:
    with served(*(certificate.files if request.param == "tls" else ())) as found:
        yield found


@pytest.fixture(autouse=True)
def _hasty(redline: Redline) -> None:
    redline.environment[HASTY] = "1"


def flags_of(url: str, case: Case) -> tuple[str, ...]:
    """The flags of `load` and `limit` for a case."""
    insecure = ("--insecure",) if url.startswith("https") else ()
    return (f"{url}{case.path}", "-X", case.method, *case.flags, *insecure)


@pytest.mark.parametrize(("url", "case"), over_each(RIGHT, (*_QUICK, "/auth", "/empty")), indirect=["url"])
def test_what_http_allows_is_loaded(redline: Redline, url: str, case: Case) -> None:
    done = redline("load", *flags_of(url, case), *SHORT, "--json").measured()
    outcomes = done.json["counts"]["outcomes"]
    assert outcomes["ok"] == sum(outcomes.values()) > 0


@pytest.mark.parametrize(("url", "case"), over_each(RIGHT), indirect=["url"])
def test_what_http_allows_is_searched(redline: Redline, url: str, case: Case) -> None:
    done = redline("limit", *flags_of(url, case), *SHORT_SEARCH)
    assert "does not answer as expected" not in done.err
    assert "/s" in done.out, done.err


@pytest.mark.parametrize(("url", "case"), over_each(WRONG, (*_QUICK, "/open", "/auth")), indirect=["url"])
def test_what_it_does_not_allow_is_wrong_for_a_load(redline: Redline, url: str, case: Case) -> None:
    done = redline("load", *flags_of(url, case), *SHORT, "--timeout", "1s")
    done.refused(1, "does not answer as expected", case.wrong)


@pytest.mark.parametrize(("url", "case"), over_each(WRONG), indirect=["url"])
def test_what_it_does_not_allow_is_wrong_for_a_search(redline: Redline, url: str, case: Case) -> None:
    redline("limit", *flags_of(url, case), *SHORT_SEARCH).refused(1, "does not answer as expected", case.wrong)


@pytest.mark.long
@pytest.mark.parametrize("case", BY_GET)
def test_a_comparison_starts_its_servers_with_the_same_verdicts(redline: Redline, case: Case) -> None:
    command = shlex.join([sys.executable, "-I", "-S", str(SERVER), "{port}"])
    flags = ("--path", case.path, *case.flags, "--load", "closed:1")
    if not case.wrong:
        done = compared(redline, command, command, *flags)
        too_little = case.path == "/huge" and "measured" in done.err  # of so large answers
        assert done.code == 0 or too_little, done.err
    else:
        redline("ab", command, command, *flags, "--for", "3s").refused(1, case.wrong)


@pytest.mark.long
@pytest.mark.parametrize("over", ["h1", "h1+tls"])
def test_a_run_has_the_same_verdicts(redline: Redline, certificate: Certificate, over: str) -> None:
    folder = redline.folder / "catalogue" / "answers"
    folder.mkdir(parents=True)
    (folder / "ca.pem").write_text(certificate.pem)
    tls = over == "h1+tls"
    command = [sys.executable, "-I", "-S", str(SERVER), "{port}", *(map(str, certificate.files) if tls else ())]
    family = {
        "about": "answers that are named",
        "runtime": "python",
        "build": {"run": ["true"], "inputs": ["server.yaml"], "outputs": ["server.yaml"]},
        "servers": {"one": {"about": "one", "start": {"command": command}}},
        **({"tls": {"ca": "ca.pem"}} if tls else {}),
    }
    cases = {f"Case{number}": case for number, case in enumerate((*RIGHT, *WRONG))}
    scenarios = {"scenarios": {name: case.scenario for name, case in cases.items()}}
    suite = {
        "servers": ["answers.one"],
        "scenarios": list(cases),
        "loads": {"some": {"closed": {"users": 1}, "for": "20s", "count": 10}},
        "warmup": "0s",
        "trials": 1,
    }
    (folder / "server.yaml").write_text(json.dumps(family))
    (folder.parent / "scenarios.yaml").write_text(json.dumps(scenarios))
    (redline.folder / "suite.yaml").write_text(json.dumps(suite))
    done = redline("run", "suite.yaml", "-o", "out", "--json")
    cells = {cell["scenario"]: cell for cell in done.json["cells"]}
    assert set(cells) == set(cases), done.err
    for name, case in cases.items():
        (trial,) = cells[name]["trials"]
        if case.wrong:
            assert case.wrong in trial["failure"], (case, trial)
        else:
            assert not trial["failure"], (case, trial)
            assert cells[name]["counts"]["outcomes"]["ok"] == 10, (case, cells[name]["counts"])
