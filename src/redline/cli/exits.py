"""Exit codes of the command line."""

DONE = 0
COULD_NOT_RUN = 1
MISSED = 3
INTERRUPTED = 130
