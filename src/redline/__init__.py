"""Redline: a performance lab for HTTP servers whose numbers nobody has to doubt.

The commands are functions too: `from redline import ab, limit, load, run, serve, Suite`. They are imported at their
first use, so that `import redline` takes no time.
"""

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than `redline --version` may
if TYPE_CHECKING:
    from redline.api import MeasurementInterrupted, Suite, ab, limit, load, read_requests, run, serve

__all__ = ["MeasurementInterrupted", "Suite", "ab", "limit", "load", "read_requests", "run", "serve"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module("redline.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
