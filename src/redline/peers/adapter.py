"""What the adapters of other tools have in common."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

LONGEST_OUTPUT = 1 << 20
_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


@dataclass(frozen=True)
class Asked:
    """The load that a peer is asked for, on these cores (empty: any). `scratch` is a folder for what it writes."""

    url: str
    rate_per_s: float
    connections: int
    seconds: float
    scratch: Path
    cpus: tuple[int, ...] = ()

    @property
    def whole_seconds(self) -> int:
        """For tools that take no other."""
        return max(1, math.ceil(self.seconds))


class Adapter(Protocol):
    """How one tool is called, and how its output is read.

    `settles_s` is for how long it loads before it counts, `loop` whether it holds a rate, and `note` what to know of
    its figures. `tried_with` is the version whose output was read.
    """

    name: str
    tried_with: str
    loop: Literal["open", "closed"]
    settles_s: float
    note: str

    def version_command(self) -> list[str]:
        """Arguments that make it say its version."""
        ...

    def commands(self, asked: Asked) -> list[list[str]]:
        """Arguments of its calls, one after the other; the last one's standard output is read."""
        ...

    def read(self, output: str) -> dict[float, float]:
        """Nanoseconds by quantile (1 is the largest): only what it reports. Nothing where the output says nothing."""
        ...


def time_ns(text: str) -> float | None:
    """`5.72ms` in nanoseconds; None when it is no time."""
    match = _TIME.fullmatch(text.strip())
    return None if match is None else float(match[1]) * _UNITS_NS[match[2]]


def positive(value: object, scale_ns: float) -> float | None:
    """A number of JSON, scaled to nanoseconds; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value * scale_ns


def known(pairs: dict[float, float | None]) -> dict[float, float]:
    """Without what is not reported."""
    return {q: ns for q, ns in pairs.items() if ns is not None}
