"""`redline selftest`: test Redline against known answers, on this machine."""

import os
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.asking import places
from redline.cli import exits
from redline.cli.command_line import SelftestFlags
from redline.cli.show import OneLine, Terminal, show, write_json
from redline.cli.turns import in_turn
from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.errors import UsageError
from redline.extras.peers import find_peers
from redline.extras.selftest.cases import ARRIVALS, known_cases
from redline.extras.selftest.results import SelftestResult
from redline.extras.selftest.rig import Rig, build_oracle
from redline.extras.selftest.run import SelftestPlan, run
from redline.extras.selftest.view import selftest_sections
from redline.model import Interval
from redline.quantities import duration
from redline.watching.machine import plan_placement

_SHORTEST_S, _LONGEST_S = 0.5, 600.0


def execute(flags: SelftestFlags) -> None:
    """Test the engine against servers with known answers: truth, answer, error, and whether that is good enough."""
    order = _order(flags.seconds, flags.case, peers=flags.peers)
    console = Terminal(stderr=True)
    result = _run(order, console)
    if flags.json:
        write_json(result)
    else:
        show(selftest_sections(result))
    if result.judgement == "off":
        raise typer.Exit(exits.COULD_NOT_RUN)


def _order(seconds: float | None, wanted: list[str], *, peers: bool) -> SelftestPlan:
    """Return the cases to run. Raises UsageError for an unknown case, and for a length out of range."""
    if seconds is not None and not _SHORTEST_S <= seconds <= _LONGEST_S:
        raise UsageError(
            f"--seconds {seconds:g} is not possible", hint=f"from {_SHORTEST_S:g} to {_LONGEST_S:g} seconds"
        )
    cases = known_cases(seconds)
    names = [known.name for known in cases] + [ARRIVALS]
    for name in wanted:
        if name not in names:
            raise UsageError(f"--case {name}: there is no such case", hint=f"the cases are {', '.join(names)}")
    return SelftestPlan(
        cases=tuple(known for known in cases if not wanted or known.name in wanted),
        arrivals=not wanted or ARRIVALS in wanted,
        peers=find_peers() if peers else (),
        at_most_s=seconds,
    )


def _run(order: SelftestPlan, console: Console) -> SelftestResult:
    """Print the expected time, build, and run, with a line of progress."""
    placement = plan_placement()
    driver = EngineDriver(find_engine())
    with in_turn("redline selftest", console), OneLine(console) as line, tempfile.TemporaryDirectory() as scratch:
        oracle = build_oracle(
            *places.own(),
            placement,
            lambda progress: line.say(Text(f"building the oracle: {progress}")),
        )
        count = len(order.cases) + order.arrivals
        line.print(Text(f"{count} {'case' if count == 1 else 'cases'}, about {duration(order.seconds * 1e9)}"))
        if order.peers:
            names = ", ".join(f"{peer.adapter.name} {peer.version}".strip() for peer in order.peers)
            line.print(Text(f"compared with {names}"))
        if placement.lab_cpus:
            os.sched_setaffinity(0, placement.lab_cpus)
        current = ""

        def begin(what: str) -> None:
            nonlocal current
            current = what
            line.say(Text(what))

        def watch(interval: Interval) -> None:
            p99 = duration(interval.response.quantile_ns(0.99))
            line.say(Text(f"{current}  {interval.phase}  {interval.end_ns / 1e9:.1f} s  p99 {p99}"))

        return run(order, Rig(oracle, driver, Path(scratch), watch), begin)
