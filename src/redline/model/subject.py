"""What a probe or a profiler watches."""

from typing import Literal

Subject = Literal["server", "engine", "machine", "hop-1", "hop-2", "hop-3", "hop-4"]
HOPS: tuple[Subject, ...] = ("hop-1", "hop-2", "hop-3", "hop-4")
"""The proxies of a route, the client's first."""
