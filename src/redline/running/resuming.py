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

    `trials`: as many per cell in the end, `budget_ns`: the time of all starts together; neither for a search. Raises
    RedlineError where it cannot go on.
    """
    if RunStore(folder).kind != "search":
        return RunSession.resume(folder, bench_for, listener, trials, budget_ns)
    flag = "--trials" if trials is not None else "--for" if budget_ns is not None else ""
    if flag:
        raise UsageError(f"{folder} holds a search, which takes no {flag}", hint=f"leave out {flag}")
    return SearchSession.resume(folder, bench_for, listener)
