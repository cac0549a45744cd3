"""Runs the cases and prints the section of bench/results.md."""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.cost.pairs import Client, in_rounds, progress
from bench.cost.place import Place, Use, busy_line, look
from bench.cost.table import Row, row, table
from bench.rig import build_oracle, engine_version, machine, running
from bench.traffic import sends
from bench.traffic.cpu import SHORT, cost, run
from bench.traffic.sends import Send
from bench.traffic.tools import Tool, Tools, Wanted, peers, redline
from redline.errors import RedlineError, UsageError

GOAL = 1 / 3
CASES: dict[str, Callable[[], tuple[Send, ...]]] = {"plain": sends.plain, "mix": sends.mix}
WITHOUT_GOAL = ("wrk", "h2load")
"""They draw nothing, check no answer, and count by status alone: they bound what can be reached."""


def main() -> None:
    """Run the chosen cases."""
    flags = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise UsageError("server and client need a core each, and there is one", hint="use a machine with two cores")
    first = look()
    progress(first)
    before = Use.now()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(tuple(cores), build_oracle(), Path(folder), flags.pairs, flags.seconds)
        tools = peers(Path(folder))
        heading = _heading(place, tools)
        rows = [each for name in flags.case or CASES for each in _case(name, place, tools)]
    busy = [f"Before: {first}", f"During the bench: {busy_line(before, Use.now())}", ""]
    print("\n".join([*heading, *busy, *table(rows)]))


def _case(name: str, place: Place, tools: Tools) -> Sequence[Row]:
    """Redline first, then each peer, and in the opposite order in every second round."""
    progress(f"{name}:")
    ours, requests = redline(), CASES[name]()
    by_name = {tool.name: tool for tool in (ours, *tools.found)}
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        base = f"http://{oracle.endpoint.host}:{oracle.endpoint.port}"
        wanted = Wanted(requests, base, place.seconds, place.scratch)
        samples = in_rounds(
            [Client(tool.name, partial(run, tool, wanted, place.client_core)) for tool in by_name.values()],
            place.pairs,
            progress,
            lambda client: cost(by_name[client.name], wanted, place.client_core),
        )
    samples.failed |= tools.missing
    lacking = {tool.name: tool.lacks for tool in tools.found if tool.lacks and any(send.body for send in requests)}
    rows = []
    for peer in (*(tool.name for tool in tools.found), *tools.missing):
        case = f"{name}, without {lacking[peer]} by {peer}" if peer in lacking else name
        rows.append(row(case, ours.name, peer, None if peer in WITHOUT_GOAL else GOAL, samples))
    return rows


def _heading(place: Place, tools: Tools) -> list[str]:
    how = (
        f"{place.pairs} rounds, order alternating, of {place.seconds} s less {place.seconds * SHORT:g} s;"
        f" server on core {place.server_core}, client on core {place.client_core}."
    )
    who = [f"redline {redline().version}", engine_version(), *(_named(tool) for tool in tools.found)]
    absent = [f"{name} {why}" for name, why in tools.missing.items()]
    where = f"{machine()}, Python {platform.python_version()}"
    return ["## What a request costs, by what is requested", "", f"{how} {where}; {'; '.join([*who, *absent])}.", ""]


def _named(tool: Tool) -> str:
    return f"{tool.name} {tool.version or 'of unknown version'}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.traffic", description=__doc__)
    parser.add_argument("--pairs", type=int, default=6, help="rounds; an interval needs two at least (6)")
    parser.add_argument("--seconds", type=int, default=8, help="length of the long run of a round (8)")
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one; may be given several times")
    flags = parser.parse_args()
    if flags.pairs < 1 or flags.seconds < 1:
        raise UsageError("there has to be one round of a second at least", hint="--pairs 6 --seconds 8")
    return flags


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
