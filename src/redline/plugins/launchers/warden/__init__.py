"""Stands by one server: starts it, keeps its output, leaves nothing of it behind whatever happens to the lab.

A process of its own, see `guard.py`. It imports nothing but the standard library, and of that only what loads in a few
milliseconds. docs/reference/launching.md describes the protocol:

- stdin: one line of JSON, the order; then nothing. Its end (the lab let go, or was killed) means: stop the server.
- stdout: one line of JSON for each event: `started` or `failed`, and `exited` when the server ended.
- stderr: the log. The first `log_head` bytes of the server's output, and the last `log_tail` when there was more.

Between events it sleeps in poll(2) and costs no CPU time.
"""

from .main import main

__all__ = ["main"]
