"""What the command loads before it knows what it is asked."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("first", "needless"),
    [(None, {"scipy.stats", "ruptures"}), ("check", {"redline.cli.commands.limit", "redline.cli.commands.selftest"})],
    ids=["what only judging needs", "other commands"],
)
def test_the_command_line_does_not_load(first: str | None, needless: set[str]) -> None:
    loads = f"import sys; from redline.cli.main import command_line; command_line({first!r})"
    code = f"{loads}; print(*({needless!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""
