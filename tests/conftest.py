"""For all tests."""

import signal

# A shell starts background jobs with SIGINT ignored, and every process that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
