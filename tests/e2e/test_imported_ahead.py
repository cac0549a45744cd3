"""What a load needs after its end is imported while the server warms up: people wait for what is imported later."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import targets

pytestmark = pytest.mark.e2e

WATCHED = '''
import sys, threading, types
from pydantic import BaseModel
from redline.cli.main import main
from redline.driving import ahead

known = set()

def all_known():
    """The modules that are imported, and the models that are built and hold other models: all else takes no time."""
    kinds = [BaseModel]
    for kind in kinds:
        kinds += kind.__subclasses__()
    built = [kind for kind in kinds if kind.__pydantic_complete__]
    return {*sys.modules, *(repr(kind) for kind in built if repr(kind.__pydantic_core_schema__).count("'model'") > 1)}

class AtOnce(threading.Thread):
    """Imports all before the driver goes on, however busy the machine is."""

    def start(self):
        super().start()
        self.join()
        known.update(all_known())

ahead.threading = types.SimpleNamespace(Thread=AtOnce, Event=threading.Event)
ahead._MARGIN_NS = -(10**12)
try:
    main()
finally:
    for name in all_known() - known if known else ["nothing was imported ahead"]:
        sys.stderr.write(f"late: {name}\\n")
'''
OF_SOME = ("rich._unicode_data", "numpy.ma")
"""How wide characters are, read when the first that is not ASCII is printed; and what medians of numpy import."""


@pytest.mark.parametrize(
    "command",
    [
        ("load", "-c", "4", "-d", "300ms", "--warmup", "100ms"),
        ("load", "-c", "4", "-d", "300ms", "--warmup", "100ms", "-o", "run"),
        ("load", "-c", "4", "-d", "300ms", "--warmup", "100ms", "--json"),
    ],
    ids=" ".join,
)
def test_nothing_is_imported_or_built_after_a_load(command: tuple[str, ...], tmp_path: Path) -> None:
    said, late = run_watched(command, tmp_path)
    assert "throughput" in said
    assert not late


@pytest.mark.long
def test_nothing_is_imported_or_built_after_the_first_load_of_a_search(tmp_path: Path) -> None:
    said, late = run_watched(("limit", "--objective", "p99 < 200ms", "--for", "13s"), tmp_path)
    assert "Around the limit" in said
    assert not late


def run_watched(command: tuple[str, ...], folder: Path) -> tuple[str, list[str]]:
    """What a command says of a healthy server, and what it imported or built late."""
    with targets.target(targets.healthy) as url:
        script = [sys.executable, "-c", WATCHED, command[0], url, *command[1:]]
        done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    late = [line for line in done.stderr.splitlines() if line.startswith("late: ")]
    return done.stdout, [line for line in late if not any(name in line for name in OF_SOME)]
