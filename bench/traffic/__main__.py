"""Runs the cases and prints the section of bench/results.md."""

import argparse
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.cost.pairs import Client, Sample, Samples, in_rounds, progress
from bench.cost.place import Place, Use, busy_line, look
from bench.cost.table import Row, row, table
from bench.rig import build_oracle, engine_binary, engine_version, machine, running
from bench.traffic import sends
from bench.traffic.before import AT_MOST_MORE, engines
from bench.traffic.cpu import SHORT, cost, run
from bench.traffic.sends import Send
from bench.traffic.tools import Tool, Tools, Wanted, peers, redline
from redline.errors import RedlineError, UsageError

GOAL = 1 / 3
AT_MOST_PLAIN = 1.3


@dataclass(frozen=True)
class Case:
    """What is requested of an oracle with these arguments, and whether Redline reads the answers as events."""

    requests: Sequence[Send]
    oracle: tuple[str, ...] = ()
    events: bool = False


CASES: dict[str, Case] = {
    "plain": Case(sends.plain()),
    "mix": Case(sends.mix()),
    "journey": Case(sends.journey(), ("--sessions",)),
    "events": Case(sends.plain(), ("--events", "20", "--event-gap", "2ms"), events=True),
}
WITHOUT_GOAL = ("wrk", "h2load")
"""They show how little is possible."""


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
        tools = Tools(()) if flags.before else peers(Path(folder))
        heading = _heading(place, tools, flags.before)
        rows: list[Row] = []
        below: list[str] = []
        try:
            if flags.before:
                rows += _before(flags.before, place)
            for name in () if flags.before else flags.case or CASES:
                try:
                    rows += _case(name, place, tools)
                except (RedlineError, OSError, ValueError) as error:
                    below.append(f"{name} was not run: {' '.join(str(error).split())}")
        except KeyboardInterrupt:
            below.append("Interrupted: what is missing was not run.")
    busy = [f"Before: {first}", f"During the bench: {busy_line(before, Use.now())}", ""]
    print("\n".join([*heading, *busy, *table(rows), *(f"\n{each}" for each in below)]))


def _case(name: str, place: Place, tools: Tools) -> Sequence[Row]:
    """Redline first, then each peer, and in the opposite order in every second round."""
    progress(f"{name}:")
    case, ours = CASES[name], redline()
    requests = case.requests
    if any(send.takes for send in requests):
        return _journey(name, case, place, tools)
    with _oracle(place, *case.oracle) as base:
        samples = _in_rounds(dict.fromkeys((ours, *tools.found), base), case, place)
    samples.failed |= tools.missing
    lacking = {tool.name: tool.lacks for tool in tools.found if tool.lacks and any(send.body for send in requests)}
    rows = []
    for peer in (*(tool.name for tool in tools.found), *tools.missing):
        shown = f"{name}, without {lacking[peer]} by {peer}" if peer in lacking else name
        rows.append(row(shown, ours.name, peer, _goal(peer), samples))
    return rows


def _before(binary: Path, place: Place) -> Iterator[Row]:
    """A plain request of this engine and of an older one, by each backend."""
    progress(f"plain requests, and those of {binary}:")
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        pairs = engines(engine_binary(), binary, oracle.endpoint.port, place.client_core)
        samples = _in_rounds(dict.fromkeys([tool for pair in pairs for tool in pair], ""), CASES["plain"], place)
    for ours, theirs in pairs:
        yield row("plain", ours.name, theirs.name, AT_MOST_MORE, samples)


def _journey(name: str, case: Case, place: Place, tools: Tools) -> Sequence[Row]:
    """Tools that have journeys, and Redline with the same requests in no order, on a server that asks for no login."""
    ours, unlinked = redline(), redline("redline, no journey", sends.as_unlinked)
    able = [tool for tool in tools.found if tool.journeys]
    with _oracle(place, *case.oracle) as base, _oracle(place) as open_to_all:
        samples = _in_rounds({ours: base, unlinked: open_to_all} | dict.fromkeys(able, base), case, place)
    samples.failed |= tools.missing | {tool.name: "has no journeys" for tool in tools.found if not tool.journeys}
    peers = (*(tool.name for tool in tools.found), *tools.missing)
    rows = [row(name, ours.name, unlinked.name, AT_MOST_PLAIN, samples)]
    return [*rows, *(row(name, ours.name, peer, _goal(peer), samples) for peer in peers)]


def _goal(peer: str) -> float | None:
    return None if peer in WITHOUT_GOAL else GOAL


def _in_rounds(bases: Mapping[Tool, str], case: Case, place: Place) -> Samples:
    """Each tool once a round on its server."""
    wanted = {
        tool: Wanted(case.requests, base, place.seconds, place.scratch, case.events) for tool, base in bases.items()
    }
    by_name = {tool.name: tool for tool in bases}

    def measure(client: Client) -> Sample:
        tool = by_name[client.name]
        return cost(tool, wanted[tool], place.client_core)

    clients = [Client(tool.name, partial(run, tool, wanted[tool], place.client_core)) for tool in bases]
    return in_rounds(clients, place.pairs, progress, measure)


@contextmanager
def _oracle(place: Place, *arguments: str) -> Iterator[str]:
    """The URL of an oracle that answers at once."""
    with running(place.oracle, "null", *arguments, cpu=place.server_core) as oracle:
        yield f"http://{oracle.endpoint.host}:{oracle.endpoint.port}"


def _heading(place: Place, tools: Tools, before: Path | None) -> list[str]:
    how = (
        f"{place.pairs} rounds, order alternating, of {place.seconds} s less {place.seconds * SHORT:g} s;"
        f" server on core {place.server_core}, client on core {place.client_core}."
    )
    who = [f"redline {redline().version}", engine_version(), *(_named(tool) for tool in tools.found)]
    who += [f"before {hashlib.sha256(before.read_bytes()).hexdigest()[:12]}"] if before else []
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
    parser.add_argument(
        "--before", type=Path, metavar="ENGINE", help="compare with this older engine, and nothing else"
    )
    flags = parser.parse_args()
    if flags.before and (flags.case or not flags.before.is_file()):
        raise UsageError("--before takes the file of an engine, and no --case", hint="--before /path/redline-engine")
    if flags.pairs < 1 or flags.seconds < 1:
        raise UsageError("there has to be one round of a second at least", hint="--pairs 6 --seconds 8")
    return flags


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
