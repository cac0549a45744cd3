"""For all tests."""

import gc
import os
import shutil
import signal
import tempfile

import pytest

from redline.watching.measurements import NAMED_BY

# The tests' modules and all that they import stay until the end: to look for garbage among them finds none. In a fresh
# checkout, where pytest first rewrites each module's assertions, it took a fourth of the CPU time of collecting.
gc.disable()

# A shell starts background jobs with SIGINT ignored, and every process that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands paint nothing in place in the log of a CI job; tests of that set it.
os.environ.pop("CI", None)

# Tests that measure at the same time, in other processes, are no neighbours that they should name.
_MEASUREMENTS = tempfile.mkdtemp(prefix="redline-measurements-")
os.environ[NAMED_BY] = _MEASUREMENTS


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, and not among what was there before them."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the tests shared."""
    del config
    shutil.rmtree(_MEASUREMENTS, ignore_errors=True)
