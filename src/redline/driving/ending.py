"""How an engine ended without a result, and why."""

import re
import signal

from redline.lazily import dataclass
from redline.refusals import of_engine

_OF_ITS_OWN = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
)
"""Signals by which a process ends because of what it did itself."""
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed")


@dataclass(frozen=True)
class EngineEnding:
    """The exit code of an engine without a result, and the end of what it `said`.

    `overdue`: the lab killed it, because it was far beyond its deadline. `memory_kills`: how many processes the kernel
    killed for lack of memory while it ran; None if unknown.
    """

    code: int
    said: str
    overdue: bool = False
    memory_kills: int | None = None

    def __str__(self) -> str:
        if self.overdue:
            return f"the engine did not end by its deadline, and was killed: {self.said}"
        if self._lacked_memory:
            return f"the engine ended before it gave a result: {of_engine().message}"
        if self.code < 0:
            number = -self.code
            name = signal.Signals(number).name if number in set(signal.Signals) else "not a known signal"
            return f"the engine was killed (signal {number}, {name}) before it gave a result: {self.said}"
        return f"the engine ended with code {self.code} and no result: {self.said}"

    @property
    def _lacked_memory(self) -> bool:
        """Whether the system refused it memory, after which it ends itself."""
        return self.code == -signal.SIGABRT and _NO_MEMORY.search(self.said) is not None

    @property
    def hint(self) -> str:
        """The likely cause, and what to do."""
        if self._lacked_memory:
            return of_engine().hint
        if self.code == -signal.SIGKILL and not self.overdue:
            return self._who_kills
        if self.overdue:
            return "see whether this machine was suspended, or had no core left; else report it, with this message"
        if self.code < 0 and -self.code not in _OF_ITS_OWN:
            return "see who sent that signal: it is none that the engine gives itself"
        return "this is a fault of the engine, not of the server: report it, with this message"

    @property
    def _who_kills(self) -> str:
        if self.memory_kills:
            return "the kernel killed for lack of memory meanwhile: see `dmesg`, and free memory or lower the load"
        if self.memory_kills is None:
            return "whether memory was short is not known: see `dmesg`, or who else sends SIGKILL there"
        return "the kernel counted no kill for lack of memory meanwhile: see who else sends SIGKILL here"
