"""For all tests."""

import os
import shutil
import signal
import tempfile

import pytest

from redline.watching.measurements import NAMED_BY

# A shell starts background jobs with SIGINT ignored, and every process that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands paint nothing in place in the log of a CI job; tests of that set it.
os.environ.pop("CI", None)

# Tests that measure at the same time, in other processes, are no neighbours that they should name.
_MEASUREMENTS = tempfile.mkdtemp(prefix="redline-measurements-")
os.environ[NAMED_BY] = _MEASUREMENTS


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the tests shared."""
    del config
    shutil.rmtree(_MEASUREMENTS, ignore_errors=True)
