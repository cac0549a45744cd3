"""Ten mistakes as flags, as parameters of Python, in a suite and as inputs of CI: data alike, each in its words."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redline
from redline.cli.command_line import app
from redline.errors import RedlineError
from redline.wording import asked_by, medium_of

SERVERS = {"load": ("http://127.0.0.1:1/",), "ab": ("http://127.0.0.1:1/", "http://127.0.0.1:2/")}
SUITE = """\
servers:
  - url: http://127.0.0.1:1/
scenarios:
  - {name: items, get: /}
loads:
  some: {closed: {users: 8}, for: 10s}
"""
UNIT = "write a number with a unit (h, m, s, ms, us, ns), such as 250ms, 25s or 1m30s"
RATE = "write requests per second, such as 5000 or 5000/s; 300/min and 100/h are understood too"
CONDITIONS = "write conditions such as `p99 < 200ms, errors < 0.1%, achieved > 99%`"
SHARE = "write a percentage such as 2%, or a part of 1 such as 0.02"


@dataclass(frozen=True)
class Mistake:
    """A wrong value: as flags of a command, as an argument, and as a change of the suite, if that has the part.

    `message` and `hint` have `{part}` where the part is named, and `{example}` where another value is advised.
    """

    command: str
    flags: tuple[str, str]
    argument: tuple[str, object]
    change: tuple[str, str] | None
    part: tuple[str, object]
    message: str
    hint: str

    def said(self, part: str, example: str = "") -> str:
        return f"{self.message}\n  hint: {self.hint}".format(part=part, example=example)


MISTAKES = {
    "-d 10x": Mistake(
        *("load", ("-d", "10x"), ("duration", "10x"), ("for: 10s", "for: 10x")),
        *(("duration", "10x"), "{part}: `10x` has an unknown unit `x`", UNIT),
    ),
    "-c 0": Mistake(
        *("load", ("-c", "0"), ("users", 0), ("users: 8", "users: 0")),
        *(("connections", 0), "{part}: a load without users sends nothing", "give at least 1, or a stage to more"),
    ),
    "-R fast": Mistake(
        *("load", ("-R", "fast"), ("rate", "fast"), ("closed: {users: 8}", "open: {rate: fast}")),
        *(("rate", "fast"), "{part}: `fast` is not a rate", RATE),
    ),
    "--think soon": Mistake(
        *("load", ("--think", "soon"), ("think", "soon"), ("users: 8", "users: 8, think: soon")),
        *(("think", "soon"), "{part}: `soon` is not a duration", UNIT),
    ),
    "--objective": Mistake(
        *("load", ("--objective", "p99 5ms"), ("objective", "p99 5ms"), ("loads:", "objective: p99 5ms\nloads:")),
        *(("objective", None), "{part}: `p99 5ms` is not a condition", CONDITIONS),
    ),
    "--status 99": Mistake(
        *("load", ("--status", "99"), ("status", 99), ("get: /", "get: /, expect: {status: 99}")),
        *(("status", 99), "{part}: must be at least 200, not `99`"),
        "the final status code, 200 to 599, or a list of codes that are right",
    ),
    "--stage 10": Mistake(
        *("load", ("--stage", "10"), ("stages", "10"), None),
        *(("stages", "10"), "{part} is not a stage", "write users and how long: {example}"),
    ),
    "--for 10x": Mistake(
        *("ab", ("--for", "10x"), ("budget", "10x"), ("loads:", "budget: 10x\nloads:")),
        *(("budget", "10x"), "{part}: `10x` has an unknown unit `x`", UNIT),
    ),
    "--names a": Mistake(
        *("ab", ("--names", "a"), ("names", ["a"]), None),
        *(("names", "a"), "{part} are not two names", "such as {example}"),
    ),
    "--threshold big": Mistake(
        *("ab", ("--threshold", "big"), ("threshold", "big"), ("loads:", "threshold: big\nloads:")),
        *(("threshold", "big"), "{part}: `big` is not a share", SHARE),
    ),
}
EXAMPLES = {
    "--stage 10": ("--stage 1000:10s", "stages='1000:10s'"),
    "--names a": ("--names 'main,this pull request'", "names=['main', 'this pull request']"),
}
"""The examples that advice has: as a flag, and as an argument."""
PLACES = {
    "-d 10x": "suite.yaml:6:35: loads.some.for",
    "-c 0": "suite.yaml:6:26: loads.some.closed.users",
    "-R fast": "suite.yaml:6:23: loads.some.open.rate",
    "--think soon": "suite.yaml:6:36: loads.some.closed.think",
    "--objective": "suite.yaml:5:12: objective",
    "--status 99": "suite.yaml:4:44: scenarios[0].expect.status",
    "--for 10x": "suite.yaml:5:9: budget",
    "--threshold big": "suite.yaml:5:12: threshold",
}
INPUTS = {
    "--for 10x": ("`for: 10x`", "REDLINE_FOR=10x", "", ""),
    "--names a": (
        *("`names: a`", "REDLINE_NAMES=a"),
        *("`names: main,this pull request`", "REDLINE_NAMES=main,this pull request"),
    ),
    "--threshold big": ("`threshold: big`", "REDLINE_THRESHOLD=big", "", ""),
}
"""As the input of an action and as the variable of a job, and the examples of both."""


def error_of_command(*words: str) -> RedlineError:
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, RedlineError)
    return error


def data(error: RedlineError) -> list[tuple[str | None, object]]:
    return [(problem.part, problem.value) for problem in error.problems]


@pytest.mark.parametrize("written", MISTAKES)
def test_as_a_flag(written: str) -> None:
    mistake = MISTAKES[written]
    error = error_of_command(mistake.command, *SERVERS[mistake.command], *mistake.flags)
    assert str(error) == mistake.said(written, EXAMPLES.get(written, ("", ""))[0])
    assert data(error) == [mistake.part]


@pytest.mark.parametrize("written", MISTAKES)
def test_as_a_parameter_of_python(written: str) -> None:
    mistake = MISTAKES[written]
    name, value = mistake.argument
    with pytest.raises(RedlineError) as caught:
        getattr(redline, mistake.command)(*SERVERS[mistake.command], **{name: value})
    value = value if name == "names" else mistake.part[1]
    shown = name if value is None else f"{name}={value!r}"
    assert str(caught.value) == mistake.said(shown, EXAMPLES.get(written, ("", ""))[1])
    assert data(caught.value) == [mistake.part]


@pytest.mark.parametrize("written", [written for written, mistake in MISTAKES.items() if mistake.change])
def test_in_a_suite(written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[written]
    assert mistake.change is not None
    assert mistake.change[0] in SUITE
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(SUITE.replace(*mistake.change))
    error = error_of_command("check", "suite.yaml")
    assert str(error) == mistake.said(PLACES[written])
    assert [str(problem.place) for problem in error.problems] == [PLACES[written]]


@pytest.mark.parametrize("written", INPUTS)
@pytest.mark.parametrize("asks_by", ["inputs", "variables"])
def test_as_an_input_of_ci(written: str, asks_by: str) -> None:
    mistake, at = MISTAKES[written], ["inputs", "variables"].index(asks_by)
    with asked_by(medium_of({"REDLINE_ASKS_BY": asks_by})):
        error = error_of_command(mistake.command, *SERVERS[mistake.command], *mistake.flags)
    assert str(error) == mistake.said(INPUTS[written][at], INPUTS[written][2 + at])
    assert data(error) == [mistake.part]
