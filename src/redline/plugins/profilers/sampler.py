"""What a profiler does to one process, and the error that is not the trial's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from redline.model import NativeMemory, ProfileFile, ProfileUnit, Slice, Stacks


class ProfilerError(Exception):
    """A profile could not be made; the text says why, in one line."""


@dataclass(frozen=True)
class Sampled:
    """What came of it: `samples` and `lost` are numbers of samples, whatever the unit of the weights.

    `files` are further ones in the profile's folder, by their names there.
    """

    stacks: Stacks
    samples: int
    lost: int = 0
    files: tuple[ProfileFile, ...] = ()
    native: tuple[NativeMemory, ...] = ()


class Sampler(Protocol):
    """Samples one process with its descendants. Every method raises ProfilerError and OSError."""

    @property
    def name(self) -> str:
        """The profiler and its version."""

    @property
    def event(self) -> str:
        """What makes it take a sample."""

    @property
    def interval(self) -> int:
        """Between samples of a thread, of CPU or wall time in nanoseconds; or bytes."""

    @property
    def unit(self) -> ProfileUnit:
        """The unit of the stacks' weights."""

    @property
    def env(self) -> dict[str, str]:
        """Variables that the process needs."""

    def prepare(self, pid: int) -> None:
        """Do what takes time, while the process has nothing to do yet."""

    def start(self, pid: int, folder: Path) -> None:
        """Begin; what is written meanwhile goes to the folder."""

    def stop(self) -> None:
        """End. Whatever was sampled is then in the folder."""

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        """What was sampled within the slices; all, without slices."""
