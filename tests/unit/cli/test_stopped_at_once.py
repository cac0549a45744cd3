"""A second Ctrl-C stops without a report: what is kept says how it is resumed."""

import io
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from rich.console import Console

from redline.cli.experiment import Output, finish, finish_search
from redline.cli.session_view import SessionView


def stopped(**_options: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("command", ["ab", "limit"])
def test_it_says_how_to_resume_what_is_kept(command: str, is_kept: bool) -> None:
    manifest = SimpleNamespace(suite_file="", terms=SimpleNamespace(by_probe=False))
    session: Any = SimpleNamespace(store=SimpleNamespace(folder=Path("runs/x")), execute=stopped, manifest=manifest)
    console, output = Console(file=io.StringIO(), width=200), Output(command, is_kept=is_kept)
    ends = partial(finish_search, view=SessionView(console)) if command == "limit" else finish
    with pytest.raises(KeyboardInterrupt):
        ends(session, output, console=console)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert said.startswith("stopped; resume with: ") is is_kept
    assert said.endswith(f"{command} --resume runs/x\n") is is_kept


def test_so_does_an_interrupt_while_it_waits_for_a_quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.cli.experiment.wait_until_quiet", lambda _console: stopped())
    console = Console(file=io.StringIO(), width=200)
    session: Any = SimpleNamespace(store=SimpleNamespace(folder=Path("runs/x")))
    with pytest.raises(KeyboardInterrupt):
        finish(session, Output("run", wait_quiet=True), console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().endswith("run --resume runs/x\n")
