"""The interface of profilers, and their error, which fails no trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from redline.model import NativeMemory, ProfileFile, ProfileUnit, Slice, Stacks


class ProfilerError(Exception):
    """A profile could not be made; the text says why, in one line."""


@dataclass(frozen=True)
class Sampled:
    """The result: `samples` and `lost` are numbers of samples, whatever the unit of the weights.

    `deepest` is the number of frames to which stacks were followed, if they end there. `files` are further files in the
    profile's folder, by their names there.
    """

    stacks: Stacks
    samples: int
    lost: int = 0
    files: tuple[ProfileFile, ...] = ()
    native: tuple[NativeMemory, ...] = ()
    deepest: int = 0


class Sampler(Protocol):
    """Samples a process and its descendants. Every method raises ProfilerError and OSError."""

    name: str
    """The profiler and its version."""
    event: str
    """The event that triggers a sample."""
    interval: int
    """The distance between samples of a thread: CPU or wall time in nanoseconds, or bytes."""
    unit: ProfileUnit
    """The unit of the stacks' weights."""
    env: dict[str, str]
    """Environment variables that the process needs."""

    def prepare(self, pid: int, folder: Path) -> None:
        """Do slow preparations, while the server is still idle. Not called for the engine, whose threads come later."""

    def start(self, pid: int, folder: Path) -> None:
        """Start sampling, and write to the folder. It samples when this returns."""

    def stop(self) -> None:
        """Stop sampling, and end what was prepared. All samples are then in the folder."""

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        """Return the samples within the slices; all of them, without slices."""
