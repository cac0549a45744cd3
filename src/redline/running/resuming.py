"""A stored session of any kind, opened to go on."""

from pathlib import Path

from redline.errors import UsageError
from redline.running.searching import SearchSession
from redline.running.session import Bench, RunSession, SessionListener
from redline.storage.runs import RunStore


def resume(
    folder: Path, bench_for: Bench, listener: SessionListener, trials: int | None = None
) -> RunSession | SearchSession:
    """Open what the folder holds, and make sure that its servers and this machine are what they were.

    `trials`: as many per cell in the end, for a run. Raises RedlineError where it cannot go on.
    """
    if RunStore(folder).kind != "search":
        return RunSession.resume(folder, bench_for, listener, trials)
    if trials is not None:
        raise UsageError(f"--trials adds rounds to a run, and {folder} holds a search", hint="leave out --trials")
    return SearchSession.resume(folder, bench_for, listener)
