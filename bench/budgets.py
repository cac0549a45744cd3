"""What the parts of Redline cost, each beside its bound in budgets.toml: `python -m bench.budgets [PART...]`.

Parts: start, judging, engine, size, tests. It takes a few minutes; what needs a program that is not installed says so.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from xml.etree import ElementTree as ET

from packaging.requirements import Requirement

from bench.judging import Size, store
from bench.rig import CHECKOUT, SIMPLE_GET, build_oracle, engine_binary, null_variant, running
from bench.startup import LOAD_S, Invocation, oracle, taken
from redline.driving.engine import EngineDriver
from redline.model import Cell, Closed, Load
from redline.ports import Drive, Endpoint

BOUNDS = Path(__file__).with_name("budgets.toml")
REDLINE = Path(sys.executable).with_name("redline")
ROUNDS = 5
FEW, MANY = 2_000, 12_000
"""Requests of two loads: what the second has more costs what its further requests cost."""
Figures = Iterator[tuple[str, float | str]]
"""Names of figures as in budgets.toml, and what they are now; or why they are not known."""


def start() -> Figures:
    """CPU and time of commands that measure little or nothing; medians of some rounds."""
    for flag in ("--version", "--help"):
        costs = [taken(Invocation([str(REDLINE), flag])) for _ in range(ROUNDS)]
        yield f"redline {flag}, CPU", statistics.median(cost.all_cpu_s for cost in costs)
    with oracle() as url, tempfile.TemporaryDirectory() as folder:
        load = [str(REDLINE), "load", url, "-d", "1s", "--warmup", "1s"]
        plain = [taken(Invocation(load, works_s=LOAD_S)) for _ in range(ROUNDS)]
        kept = [taken(Invocation([*load, "-o", f"{folder}/{number}"], works_s=LOAD_S)) for number in range(ROUNDS)]
    name = "redline load URL -d 1s"
    yield f"{name}, CPU beyond the engine", statistics.median(cost.cpu_s for cost in plain)
    yield f"{name}, beyond warm-up and load", statistics.median(cost.time_s for cost in plain)
    yield f"{name} -o DIR, CPU beyond the engine", statistics.median(cost.cpu_s for cost in kept)


def judging() -> Figures:
    """CPU of judging synthetic runs, the memory of the largest process, and bytes of the pages."""
    for cells, size in {
        15: Size(servers=5, scenarios=3, trials=5, loads=1),
        100: Size(servers=10, scenarios=5, trials=5),
        1000: Size(servers=50, scenarios=10, trials=5),
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            store(size, Path(folder) / "run")
            command = [sys.executable, "-m", "bench.judging", "--judge", f"{folder}/run"]
            costs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if cells > 15:
            yield f"{cells} cells x 5, CPU", costs["total"]
            yield f"{cells} cells x 5, memory", max(costs["peak_mb"], costs["copies_mb"])
        if cells != 100:
            yield f"page of {cells} cells", costs["page_bytes"] / (1e3 if cells == 15 else 1e6)


def engine() -> Figures:
    """Instructions in user space of a request that is sent, answered and judged, by callgrind."""
    name = "instructions per plain request"
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        yield name, "valgrind is not installed"
        return
    with running(build_oracle(), "null") as oracle:
        costs = [[_instructions(valgrind, oracle.endpoint, count) for count in (FEW, MANY)] for _ in range(ROUNDS)]
    # The fewest: how many answers a worker finds when it wakes depends on what else runs.
    yield name, min((many - few) / (MANY - FEW) for few, many in costs)


def _instructions(valgrind: str, endpoint: Endpoint, count: int) -> int:
    cell = Cell(
        variant=null_variant(),
        scenario=SIMPLE_GET,
        load=Load(name="counted", shape=Closed(users=16), duration_ns=60_000_000_000, count=count),
        warmup_ns=0,
        timeout_ns=5_000_000_000,
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        options = ("--tool=callgrind", "--callgrind-out-file=/dev/null", str(engine_binary()))
        EngineDriver(Path(valgrind), *options).drive(
            Drive(cell=cell, endpoint=endpoint, seed=1, cpus=(), workers=1, log=log)
        )
        (said,) = re.findall(r"Collected : (\d+)", log.read_text())
    return int(said)


def size() -> Figures:
    """Megabytes of what an installation brings, lines of code, and words of documentation."""
    yield "packages that the lab needs", sum(_package_bytes(name) for name in _needed("redline")) / 1e6
    rooms = {room.name: _lines(room) for room in (CHECKOUT / "src" / "redline").iterdir()}
    yield "lines of src/redline", sum(rooms.values())
    yield "lines of the largest room", max(rooms.values())
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    yield "words of README and docs", sum(len(page.read_text().split()) for page in pages)


def _needed(package: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names of all packages that a package needs without its extras."""
    for line in requires(package) or ():
        needed = Requirement(line)
        if needed.name not in known and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            known = _needed(needed.name, known | {needed.name})
    return known


def _package_bytes(name: str) -> int:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return 0
    return sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())


def _lines(room: Path) -> int:
    """Lines of Python that are not empty."""
    files = [room] if room.suffix == ".py" else [*room.rglob("*.py")]
    return sum(1 for file in files for line in file.read_text().splitlines() if line.strip())


def tests() -> Figures:
    """Seconds of the last run of `make test`, added up by room: tests that run at a time count as one after another."""
    for kind in ("unit", "e2e"):
        file = CHECKOUT / ".cache" / f"tests-{kind}.xml"
        if not file.is_file():
            yield f"{kind} tests", "make test writes it"
            continue
        by_room: defaultdict[str, float] = defaultdict(float)
        for case in ET.parse(file).iter("testcase"):
            by_room[case.get("classname", "").split(".")[2]] += float(case.get("time", 0))
        yield f"{kind} tests", sum(by_room.values())
        room, seconds = max(by_room.items(), key=lambda item: item[1])
        print(f"| {kind} tests of {room}, the slowest | {seconds:,.0f} s | | |")


PARTS: dict[str, Callable[[], Figures]] = {each.__name__: each for each in (start, judging, engine, size, tests)}


def main() -> None:
    """Print a table, a row at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all")
    given = parser.parse_args()
    bounds = tomllib.loads(BOUNDS.read_text())
    print("| | now | bound | |\n|---|---|---|---|")
    for part in given.parts or PARTS:
        for name, figure in PARTS[part]():
            unit, bound = bounds[part][name]["unit"], bounds[part][name]["bound"]
            if isinstance(figure, str):
                cells = ["not known", f"{bound:,} {unit}", figure]
            else:
                shown = f"{figure:,.2f}" if figure < 10 else f"{figure:,.0f}"
                over = f"over by {figure / bound - 1:.0%}" if figure > bound else ""
                cells = [f"{shown} {unit}", f"{bound:,} {unit}", over]
            print(f"| {name} | {' | '.join(cell.strip() for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
