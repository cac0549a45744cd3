"""A signal ends the command at any time, without a stack trace; Python's own start is beyond our control."""

import subprocess
import sys

import pytest

STARTS = """
import os, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Interrupts())
sys.argv = ["redline", "load", "http://127.0.0.1:1/", "--json"]
from redline.__main__ import main
main()
"""
WORKS = """
import os, signal, sys, time
from redline.cli import interrupts
class Falls:
    def __del__(self):
        os.kill(os.getpid(), {number})
        for _ in range(10):
            pass
interrupts.leave_at_once()
interrupts.raise_interrupts()
try:
    Falls()
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(interrupts.exit_code())
"""
SAYS = """
import os, sys
from redline.cli import interrupts
interrupts.leave_at_once()
interrupts.raise_interrupts()
interrupts.listeners.append(lambda: print("told"))
for _ in range(2):
    try:
        os.kill(os.getpid(), {number})
        for _ in range(10):
            pass
    except KeyboardInterrupt:
        print("raised")
"""
TWICE = """
import os, threading
from redline.cli import interrupts, main
def work():
    interrupts.raise_interrupts()
    lock = threading.Lock()
    with lock:
        try:
            os.kill(os.getpid(), {number})
            for _ in range(10):
                pass
        finally:
            lock.release()  # as where a second interrupt falls into what a condition does after the first
main._run = work
main.main()
"""
ENDS = [("SIGINT", 2, 130), ("SIGTERM", 15, 143), ("SIGHUP", 1, 129)]


def run(script: str, ignored: str = "") -> "subprocess.CompletedProcess[str]":
    ignoring = f"import signal; signal.signal(signal.{ignored}, signal.SIG_IGN)\n" if ignored else ""
    command = [sys.executable, "-c", ignoring + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "module", ["redline.cli.main", "typer", "redline.cli.command_line", "redline.cli.commands.load", "pydantic"]
)
@pytest.mark.parametrize(("name", "number", "code"), ENDS)
def test_a_signal_while_modules_are_imported_leaves_no_traceback(
    module: str, name: str, number: int, code: int
) -> None:
    done = run(STARTS.format(module=module, number=number))
    assert (done.returncode, done.stderr, done.stdout) == (code, "", "")


@pytest.mark.parametrize(("name", "number", "code"), ENDS)
def test_a_signal_that_falls_into_a_destructor_is_not_lost(name: str, number: int, code: int) -> None:
    done = run(WORKS.format(number=number))
    assert (done.returncode, done.stderr, done.stdout) == (code, "", "")


@pytest.mark.parametrize(("name", "number", "code"), ENDS)
def test_an_error_that_an_interrupt_led_to_is_the_interrupt(name: str, number: int, code: int) -> None:
    done = run(TWICE.format(number=number))
    assert (done.returncode, done.stderr, done.stdout) == (code, "", "")


def test_another_error_is_not() -> None:
    done = run("from redline.cli import main\nmain._run = lambda: 1 / 0\nmain.main()")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_what_the_caller_ignores_stays_ignored() -> None:
    done = run(STARTS.format(module="typer", number=1), ignored="SIGHUP")
    assert done.returncode == 1  # nothing listens there
    assert "connection refused" in done.stderr


def test_the_script_begins_with_nothing_that_takes_time() -> None:
    begun = "import sys; before = set(sys.modules); import redline.__main__; print(*set(sys.modules) - before)"
    done = run(begun)
    assert set(done.stdout.split()) == {
        *("redline", "redline.__main__", "redline.version", "redline.cli"),
        *("redline.cli.at_once", "redline.cli.began", "redline.cli.interrupts"),
    }


@pytest.mark.parametrize(("number", "said"), [(2, "told raised raised"), (15, "raised raised")])
def test_the_first_ctrl_c_alone_is_told_to_who_listens(number: int, said: str) -> None:
    done = run(SAYS.format(number=number))
    assert (done.stdout.split(), done.stderr) == (said.split(), "")
