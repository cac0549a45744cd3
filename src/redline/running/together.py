"""Servers that start and stop at the same time: those in containers of their own, which mostly wait."""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from contextvars import copy_context
from dataclasses import replace
from types import TracebackType
from typing import Any

from redline.model import ServerEntry, Variant
from redline.ports import Launch, Launcher, RunningServer

_LOOK_S = 0.1
"""A signal that arrives as a thread begins to wait for a lock is seen when the wait ends: no wait is long."""


def launched(launcher: Launcher, launches: Sequence[Launch], running: ExitStack) -> tuple[RunningServer, ...]:
    """Start servers, which `running` stops, and wait until all are ready. Raises LaunchError.

    Those in containers start first and at the same time, all others one after the other: each has the cores to itself
    while it starts. If one does not start, or on an interrupt, the others are given up.
    """
    boxed = {place: launch for place, launch in enumerate(launches) if _is_boxed(launch.variant)}
    ready = dict[int, RunningServer]()
    if len(boxed) > 1:
        together = _Together(launcher, tuple(boxed.values()))
        running.push(together.stop)
        ready = dict(zip(boxed, together.start(), strict=True))
    for place, launch in enumerate(launches):
        if place not in ready:
            ready[place] = running.enter_context(launcher.running(launch))
    return tuple(ready[place] for place in range(len(launches)))


def _is_boxed(variant: Variant) -> bool:
    """Whether it is a container of the user's, without a proxy, whose start would be part of it."""
    return isinstance(variant.entry, ServerEntry) and variant.entry.is_of_containers and not variant.hops


class _Together:
    """Servers that start at the same time, each by a thread. `stop` must be called, whatever happens."""

    def __init__(self, launcher: Launcher, launches: Sequence[Launch]) -> None:
        self._given_up = threading.Event()
        self._contexts: list[AbstractContextManager[RunningServer]] = [
            launcher.running(replace(launch, is_wanted=self._is_wanted)) for launch in launches
        ]
        self._threads = ThreadPoolExecutor(len(launches), "server")
        self._starting = list[Future[RunningServer]]()

    def _is_wanted(self) -> bool:
        return not self._given_up.is_set()

    def start(self) -> list[RunningServer]:
        """Start all, and wait until they are ready. Raises what the first that fails raises."""
        for context in self._contexts:
            self._starting.append(self._threads.submit(copy_context().run, context.__enter__))
        while True:
            ended, left = wait(self._starting, _LOOK_S, FIRST_EXCEPTION)
            for starting in self._starting:
                if starting in ended and (error := starting.exception()) is not None:
                    raise error
            if not left:
                return [starting.result() for starting in self._starting]

    def stop(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give up those that are still starting, and stop all others at the same time. Raises LaunchError."""
        self._given_up.set()
        _wait_for_all(self._starting)
        started = [
            context
            for context, starting in zip(self._contexts, self._starting, strict=False)
            if starting.exception() is None
        ]
        stopping = [
            self._threads.submit(copy_context().run, context.__exit__, kind, error, traceback) for context in started
        ]
        _wait_for_all(stopping)
        self._threads.shutdown()
        for stopped in stopping:
            stopped.result()


def _wait_for_all(futures: Sequence[Future[Any]]) -> None:
    while wait(futures, _LOOK_S).not_done:
        pass
