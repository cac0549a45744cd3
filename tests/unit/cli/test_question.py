"""Ctrl-C on a terminal asks once: an answer from what was measured, or none."""

import os
import pty
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from redline.cli import interrupts, question
from redline.cli.question import EndQuestion


@contextmanager
def asked(waits_s: float) -> Iterator[tuple[int, EndQuestion]]:
    """A question on a terminal, and the side of it on which keys are typed."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    try:
        made = EndQuestion(theirs, waits_s=waits_s)
        yield ours, made
        made.close()
        assert termios.tcgetattr(theirs) == before, "the terminal is as it was"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("key", [b"e", b"E", b"\r", b"\n", b"xye"])
def test_a_key_ends_it_early(key: bytes) -> None:
    with asked(60) as (terminal, made):
        os.write(terminal, key)
        made.settle()


def answer(terminal: int, key: bytes, made: EndQuestion) -> None:
    os.write(terminal, key)
    made.settle()


@pytest.mark.parametrize("key", [b"s", b"S", b"xs"])
def test_another_key_stops_as_ctrl_c_does(key: bytes) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with asked(60) as (terminal, made), pytest.raises(KeyboardInterrupt):
        answer(terminal, key, made)


def test_whoever_says_nothing_gets_the_answer() -> None:
    with asked(0.2) as (_, made):
        made.settle()


def test_another_ctrl_c_gives_the_terminal_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(60) as (terminal, made):
        assert not termios.tcgetattr(terminal)[3] & termios.ICANON
        monkeypatch.setattr(interrupts, "is_repeated", lambda: True)
        made.settle()
        assert termios.tcgetattr(terminal)[3] & termios.ICANON


def test_a_terminal_that_goes_away_is_an_answer() -> None:
    ours, theirs = pty.openpty()
    made = EndQuestion(theirs, waits_s=60)
    os.close(ours)
    made.settle()
    os.close(theirs)


def test_nobody_is_asked_where_stdin_is_no_terminal() -> None:
    assert not question.ask()
    question.settle()
