"""The `redline` script, also as `python -m redline`: it handles signals before it imports anything that takes time."""

from redline.cli.at_once import is_answered
from redline.cli.began import begins
from redline.cli.interrupts import leave_at_once


def main() -> None:
    """Run the command line and exit."""
    begins()
    leave_at_once()
    if is_answered():
        return
    from redline.cli.main import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
