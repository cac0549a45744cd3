"""Where the `redline` script begins: Ctrl-C is understood even while everything is still being imported."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Import the command line, run it and exit."""
    try:
        from redline.cli.main import run_command_line  # noqa: PLC0415 - inside the try, on purpose
    except KeyboardInterrupt:
        sys.exit(130)
    run_command_line()
