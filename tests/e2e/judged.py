"""Judges a load by an objective, for as long as it takes."""

from pathlib import Path

from tests.e2e.conftest import Done, Redline

LENGTHS = ("300ms", "2s", "8s")
"""A busy machine leaves a short load without an answer."""


def judged(redline: Redline, *args: str | Path, objective: str, code: int, line: str) -> Done:
    """`redline load` of these: for longer where the objective is not known, and then by what was measured.

    A known objective has to end it with this code, and to be said with this line.
    """
    for length in LENGTHS:
        done = redline("load", *args, "--warmup", "100ms", "-d", length, "--objective", objective)
        if not any(said.startswith("? ") for said in done.out.splitlines()):
            assert done.code == code, (done.code, done.out, done.err)
            assert any(said.startswith(line) for said in done.out.splitlines()), done.out
            return done
    return done.measured()
