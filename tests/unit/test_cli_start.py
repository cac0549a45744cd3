"""What the command loads before it knows what it is asked."""

import subprocess
import sys


def test_the_command_line_does_not_load_what_only_judging_needs() -> None:
    heavy = "import sys, redline.cli.main; print(*({'scipy.stats', 'ruptures'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""
