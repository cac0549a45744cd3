"""Imports what comes after a load while it warms up: Python only waits then, and people wait for it afterwards."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

from redline.model import Cell
from redline.ports import Drive

_MARGIN_NS = 300_000_000
"""Nothing is begun so shortly before the measurement: the longest import takes a third of it, or all on busy cores."""

_DETECTED_NS = 5_000_000_000
"""A warm-up whose end is detected lasts for so long: `findings.warming` needs it to call a level steady."""


def time_for_imports_ns(cell: Cell) -> int:
    """How long modules are imported while a server warms up, in nanoseconds; 0 or less where none is."""
    warms_up_ns = min(cell.warmup_ns, _DETECTED_NS) if cell.warmup_detect else cell.warmup_ns
    return warms_up_ns - _MARGIN_NS


@contextmanager
def imported_ahead(drive: Drive) -> Iterator[None]:
    """Import what a drive's caller needs `later` in a thread, from now until the measurement is near.

    What is left is imported where it is used; an import that fails does so there again.
    """
    ends, until_ns = threading.Event(), time.monotonic_ns() + time_for_imports_ns(drive.cell)

    def work() -> None:
        with suppress(Exception):
            for name in drive.later:
                if ends.is_set() or time.monotonic_ns() >= until_ns:
                    return
                module, _, model = name.partition(":")
                imported = import_module(module)
                if model:
                    getattr(imported, model).model_rebuild()

    thread = threading.Thread(target=work, name="imports", daemon=True)
    if drive.later:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        if drive.later:
            thread.join()
