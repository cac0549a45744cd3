"""A stored session of any kind, opened to go on."""

from pathlib import Path

from redline.errors import UsageError
from redline.running.searching import SearchSession
from redline.running.session import Bench, RunSession, SessionListener
from redline.storage.runs import RunStore


def resume(
    folder: Path,
    bench_for: Bench,
    listener: SessionListener,
    trials: int | None = None,
    budget_ns: int | None = None,
) -> RunSession | SearchSession:
    """Open what the folder holds, and make sure that its servers and this machine are what they were.

    A run gets rounds until there are so many `trials` of each cell, or until it has taken a longer budget. Raises
    RedlineError where it cannot go on.
    """
    if RunStore(folder).kind != "search":
        return RunSession.resume(folder, bench_for, listener, trials, budget_ns)
    for given, flag in ((trials, "--trials"), (budget_ns, "--for")):
        if given is not None:
            raise UsageError(f"{flag} adds rounds to a run, and {folder} holds a search", hint=f"leave out {flag}")
    return SearchSession.resume(folder, bench_for, listener)
