"""What `redline ab` says of a server that failed: the line that names the error once, and the others of its log."""

import pytest

from redline.cli.ab_view import failure_error
from redline.model import Failure


@pytest.mark.parametrize("log", ["Traceback:\n  f()\nOSError: no", "OSError: no\nTraceback:\n  f()"])
def test_the_decisive_line_is_said_once(log: str) -> None:
    failure = Failure(
        stage="launch", kind="start", message="A ended; its last words: OSError: no", hint="h", log_tail=log
    )
    error = failure_error(failure, ("a", "b"), from_project=False, once=False)
    assert error.message == f"{failure.message}\n    Traceback:\n      f()"
