"""For all tests."""

import os
import signal

# A shell starts background jobs with SIGINT ignored, and every process that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands paint nothing in place in the log of a CI job; tests of that set it.
os.environ.pop("CI", None)
