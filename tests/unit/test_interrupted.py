"""Ctrl-C while the command is still being imported ends it with 130 and without a trace."""

import subprocess
import sys

import pytest

STARTS = """
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
sys.argv = ["redline", "load", "http://127.0.0.1:1/", "--json"]
from redline.cli.main import main
main()
"""


@pytest.mark.parametrize("module", ["redline.cli.command_line", "redline.cli.commands.load", "redline.running.record"])
def test_an_interrupt_while_modules_are_imported_leaves_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTS.format(module=module)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")
