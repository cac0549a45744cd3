"""Runs the cases and prints the section of bench/results.md."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.cost.cases import CASES
from bench.cost.pairs import progress
from bench.cost.peers import version
from bench.cost.place import Place, Use, busy_line, look
from bench.cost.table import Outcome, table
from bench.rig import build_oracle, engine_version, machine
from redline.errors import RedlineError, UsageError

_PEERS = ("wrk", "wrk2", "h2load", "oha", "k6")


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
        heading = _heading(place)
        found = list(_all(flags.case or CASES, place))
    busy = [f"Before: {first}", f"During the bench: {busy_line(before, Use.now())}", ""]
    print("\n".join([*heading, *busy, *table([row for each in found for row in each.rows])]))
    for paragraph in (paragraph for each in found for paragraph in each.below):
        print(f"\n{paragraph}")


def _all(names: Iterable[str], place: Place) -> Iterator[Outcome]:
    """Until the first interrupt; what was found until then is not thrown away."""
    try:
        for name in names:
            yield _one(name, place)
    except KeyboardInterrupt:
        yield Outcome(below=["Interrupted: the other cases were not run."])


def _one(name: str, place: Place) -> Outcome:
    progress(f"{name}: {' '.join((CASES[name].__doc__ or '').split())}")
    try:
        return CASES[name](place)
    except (RedlineError, OSError, ValueError, subprocess.SubprocessError) as error:
        progress(f"  {name}: not run: {error}")
        return Outcome(below=[f"{name} was not run: {error}"])


def _heading(place: Place) -> list[str]:
    """Made before the first run, so that a program without a version fails at once."""
    how = (
        f"{place.pairs} rounds of {place.seconds} s, order alternating;"
        f" server on core {place.server_core}, client on core {place.client_core}."
    )
    who = "; ".join([engine_version(), *(version(name) for name in _PEERS)])
    where = f"{machine()}, Python {platform.python_version()}"
    return ["## What a request costs", "", f"{how} {where}; {who}.", ""]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="rounds; an interval needs two at least (10)")
    parser.add_argument("--seconds", type=int, default=4, help="length of a run (4)")
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one; may be given several times")
    flags = parser.parse_args()
    if flags.pairs < 1 or flags.seconds < 1:
        raise UsageError("there has to be one round of a second at least", hint="--pairs 10 --seconds 4")
    return flags


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
