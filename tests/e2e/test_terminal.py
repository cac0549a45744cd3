"""The commands on a real terminal: a panel while they measure, and the answer on a clean screen at the end."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import REDLINE, Redline
from tests.e2e.terminals import CTRL_C, UsersTerminal, on_terminal
from tests.fakes import targets

pytestmark = pytest.mark.e2e

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
ASKED = "end early with an answer (e) or stop without (s)? e in 5 s"
LOAD = ("-c", "2", "--warmup", "200ms")


def has(lines: list[str], pattern: str) -> bool:
    return any(re.search(pattern, line) for line in lines)


def measures(lines: list[str]) -> bool:
    """Whether the panel of a load shows a histogram."""
    return has(lines, r"^measure  \d+ s left") and has(lines, r"^ *response up to")


def test_the_answer_of_a_load_stands_first_on_a_clean_screen(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        command = [str(REDLINE), "load", url, *LOAD, "-d", "2500ms", "--objective", "p99 < 10s"]
        with on_terminal(command, redline.folder, ENVIRONMENT) as terminal:
            code = terminal.end()
    last = terminal.shown
    assert code in (0, 1)  # a busy machine may make it invalid
    assert not has(last, r"s left")
    assert last[0].startswith(url)
    if code == 0:
        assert re.match(r"throughput  [\d.]+ k?/s, p50 [\d.]+ .s", last[1])
    assert re.match(r"✓ p99 .* < 10 s" if code == 0 else r"[✓?] p99 .*< 10 s", last[2])


@pytest.mark.long
def test_a_panel_survives_a_change_of_size(redline: Redline) -> None:
    def time_lines(lines: list[str]) -> list[str]:
        return [line for line in lines if "s left" in line]

    with targets.target(targets.healthy) as url:
        command = [str(REDLINE), "load", url, *LOAD, "-d", "60s"]
        with on_terminal(command, redline.folder, ENVIRONMENT, 100) as terminal:
            before = time_lines(terminal.until(measures))
            terminal.resize(60, 100)
            after = terminal.until(lambda lines: measures(lines) and time_lines(lines)[-1:] != before)
            assert len(time_lines(after)) == 1
            assert max(map(len, after)) < 60
            terminal.type(CTRL_C)
            terminal.end()
    assert not time_lines(terminal.shown)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TTY_COMPATIBLE": "0"}])
def test_a_terminal_that_cannot_change_lines_has_none_that_change(
    redline: Redline, environment: dict[str, str]
) -> None:
    with targets.target(targets.healthy) as url:
        command = [str(REDLINE), "load", url, *LOAD, "-d", "700ms"]
        with on_terminal(command, redline.folder, {**ENVIRONMENT, **environment}) as terminal:
            terminal.end()
    assert not any(has(screen, r"\d left") for screen in terminal.screens)


def is_asked(lines: list[str]) -> bool:
    return ASKED in "".join(lines)


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.long), 120])
def test_a_load_has_a_panel_and_ctrl_c_ends_it_early_with_what_was_measured(redline: Redline, columns: int) -> None:
    with targets.target(targets.healthy) as url:
        command = [str(REDLINE), "load", url, *LOAD, "-d", "60s"]
        with on_terminal(command, redline.folder, ENVIRONMENT, columns) as terminal:
            panel = terminal.until(measures)  # a busy machine paints it late
            assert has(panel, r"/s  p50 [\d.]+ .s  p99 [\d.]+ .s")
            assert max(map(len, panel)) < columns
            terminal.type(CTRL_C)
            terminal.until(is_asked)
            terminal.type(b"e")
            assert terminal.end() == 130
    assert terminal.shown[0] == ASKED
    assert re.match(r"throughput  .* \(interrupted\)", terminal.shown[2])


def compare(redline: Redline, oracle: Path, *more: str) -> list[str | Path]:
    server = shlex.join([str(oracle), "null", "--port", "{port}"])
    return [REDLINE, "ab", server, server, "--for", "60s", "--load", "closed:4", *more]


def interval_is_shown(lines: list[str]) -> bool:
    return has(lines, r"^\S*% \[.*\]  by \d+ starts?  \w")


def test_a_comparison_shows_its_interval_and_ends_early_with_an_answer(redline: Redline, oracle: Path) -> None:
    with on_terminal(compare(redline, oracle, "-o", "kept"), redline.folder, ENVIRONMENT) as terminal:
        panel = terminal.until(interval_is_shown, 120)
        assert has(panel, r"^start \d+  \d+ s left")
        terminal.type(CTRL_C)
        terminal.until(is_asked)
        terminal.type(b"\r")
        assert terminal.end() == 130
    assert ASKED in terminal.shown
    assert "The answer, in words" in terminal.shown
    assert re.search(r"interrupted; resume with: .*redline ab --resume kept$", terminal.text)
    assert not has(terminal.shown, r"s left")


def test_a_second_ctrl_c_stops_and_says_how_to_resume(redline: Redline, oracle: Path) -> None:
    def stops(terminal: UsersTerminal) -> None:
        terminal.until(lambda lines: has(lines, r"^start \d+ "))
        terminal.type(CTRL_C + CTRL_C)

    with on_terminal(compare(redline, oracle, "-o", "kept"), redline.folder, ENVIRONMENT) as terminal:
        stops(terminal)
        assert terminal.end() == 130
    assert re.search(r"(interrupted|stopped); resume with: .*redline ab --resume kept$", terminal.text)
    assert not has(terminal.shown, "Traceback")


@pytest.mark.long
def test_who_is_asked_may_stop_without_an_answer(redline: Redline, oracle: Path) -> None:
    with on_terminal(compare(redline, oracle, "-o", "kept"), redline.folder, ENVIRONMENT) as terminal:
        terminal.until(interval_is_shown, 120)
        terminal.type(CTRL_C)
        terminal.until(is_asked)
        terminal.type(b"s")
        assert terminal.end() == 130
    assert re.search(r"stopped; resume with: .*redline ab --resume kept$", terminal.text)
    assert not has(terminal.shown, "The answer, in words|Traceback")


def test_before_anything_is_measured_there_is_no_question(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        command = [str(REDLINE), "load", url, "-c", "2", "--warmup", "60s"]
        with on_terminal(command, redline.folder, ENVIRONMENT) as terminal:
            terminal.until(lambda lines: has(lines, "^warmup"))
            terminal.type(CTRL_C)
            terminal.end()
    assert terminal.shown[0] == "nothing has been measured yet: stopping without an answer"


def test_quiet_prints_the_result_alone_and_verbose_every_step(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        load = ("load", url, *LOAD, "-d", "200ms", "-H", "Authorization: Bearer abc", "--count", "20")
        quiet, verbose = redline(*load, "-q"), redline(*load, "-v", "--json")
        both = redline(*load, "-q", "-v")
    assert quiet.err == ""
    assert "throughput" in quiet.out
    steps = verbose.err.splitlines()
    assert verbose.json["counts"]["due"] == 20
    assert has(steps, r"^ +[\d.]+ s  engine: pid \d+, \S+redline-engine$")
    assert has(steps, r"gets the job .*\"Authorization\"")
    assert has(steps, r"engine: pid \d+ ended with code 0 after [\d.]+ s$")
    assert "abc" not in verbose.err
    both.refused(2, "leave one of them out")
