"""Handle Ctrl-C, SIGTERM and SIGHUP from our first line to the last: no traceback, and no lost interrupt.

The exit code is 128 plus the number of the signal, as in a shell: 130 for Ctrl-C, 143 for SIGTERM.
"""

import os
import sys
from _collections_abc import Callable  # `collections.abc` takes time
from _signal import (  # type: ignore[import-not-found] # `signal` takes milliseconds, in which an interrupt would show
    SIG_IGN,
    SIGHUP,
    SIGINT,
    SIGTERM,
    getsignal,
    pthread_kill,
    signal,
)

_ASKED = (SIGINT, SIGTERM, SIGHUP)
_AGAIN_S = 0.01
_heard: list[int] = []
listeners: list[Callable[[], object]] = []
"""Called at the first Ctrl-C, in the main thread, wherever that is: they may neither raise nor wait for a lock."""


def leave_at_once() -> None:
    """Let a signal end the process at once: there is nothing to undo and nothing to say, as during imports.

    Ignored signals stay ignored: nohup ignores the hangup of its terminal, a background job of a shell the Ctrl-C.
    """
    for number in _ASKED:
        if getsignal(number) != SIG_IGN:
            signal(number, _leave)


def raise_interrupts() -> None:
    """Let a signal raise KeyboardInterrupt, if `leave_at_once` was called before: the command begins its work."""
    for number in _ASKED:
        if getsignal(number) is _leave:
            signal(number, _interrupt)
            sys.unraisablehook = _hear_again


def exit_code() -> int:
    """The exit code of an interrupted command."""
    return 128 + (_heard or [SIGINT])[-1]


def is_repeated() -> bool:
    """Whether there was another Ctrl-C after the first one."""
    return _heard.count(SIGINT) > 1


def led_to(error: BaseException | None) -> bool:
    """Whether an interrupt led to an error, as one does that falls into the handling of another."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _leave(number: int, _frame: object) -> None:
    os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> None:
    """Treat SIGTERM and SIGHUP like Ctrl-C: stop the servers, keep what was measured."""
    _heard.append(number)
    if number == SIGINT and _heard.count(SIGINT) == 1:
        for told in tuple(listeners):
            told()
    raise KeyboardInterrupt


def _hear_again(lost: "sys.UnraisableHookArgs") -> None:
    """Send an interrupt again that was raised in a destructor or a callback, whose exceptions Python drops."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import threading  # noqa: PLC0415 - nothing that takes time is imported above

    main, number = threading.main_thread().ident, (_heard or [SIGINT])[-1]
    again = threading.Timer(_AGAIN_S, pthread_kill, (main, number))
    again.daemon = True
    again.start()
