"""What is needed after a load is imported while it warms up, and never while it measures."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.driving import ahead
from redline.driving.ahead import _DETECTED_NS, imported_ahead
from redline.findings.warming import LEAST_S
from redline.model import Cell
from redline.ports import Drive, Endpoint
from tests.fakes.recordings import simulated_cell

SECOND_NS = 1_000_000_000
LATER = ("later_first", "later_second")
CELL = simulated_cell().model_copy(update={"warmup_ns": 10 * SECOND_NS})


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of two modules that nobody has imported."""
    for name in LATER:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in LATER:
        sys.modules.pop(name, None)


def drive(cell: Cell, folder: Path, *later: str) -> Drive:
    return Drive(
        cell=cell, endpoint=Endpoint("127.0.0.1", 1), seed=1, cpus=(), workers=1, log=folder / "log", later=later
    )


def imports() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "imports"]


def test_modules_are_imported_in_their_order_while_a_server_warms_up(modules: Path) -> None:
    (modules / "later_second.py").write_text("import sys\nassert 'later_first' in sys.modules\n")
    with imported_ahead(drive(CELL, modules, *LATER)):
        for thread in imports():
            thread.join()
        assert set(LATER) <= sys.modules.keys()


def test_a_validator_is_built(modules: Path) -> None:
    source = "from redline.model import Frozen\nclass Made(Frozen):\n    number: int\n"
    (modules / "later_first.py").write_text(source)
    with imported_ahead(drive(CELL, modules, "later_first:Made")):
        for thread in imports():
            thread.join()
        assert sys.modules["later_first"].Made.__pydantic_complete__


@pytest.mark.parametrize("left_s", [0.0, 0.3])
def test_nothing_is_begun_shortly_before_the_measurement(
    left_s: float, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = [0, 0, 10 * SECOND_NS - int(left_s * SECOND_NS)]  # when it begins, and before each module
    monkeypatch.setattr(ahead.time, "monotonic_ns", lambda: now_ns.pop(0))
    with imported_ahead(drive(CELL, modules, *LATER)):
        for thread in imports():
            thread.join()
        assert [name for name in LATER if name in sys.modules] == ["later_first"]


@pytest.mark.parametrize(
    "cell",
    [
        CELL.model_copy(update={"warmup_ns": 0}),
        CELL.model_copy(update={"warmup_ns": 60 * SECOND_NS, "warmup_detect": True}),
    ],
    ids=["without a warm-up", "of which the end is detected"],
)
def test_a_measurement_begins_after_a_warm_up_at_the_earliest(
    cell: Cell, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _DETECTED_NS == LEAST_S * SECOND_NS
    now_ns = iter([0])
    monkeypatch.setattr(ahead.time, "monotonic_ns", lambda: next(now_ns, 5 * SECOND_NS))
    with imported_ahead(drive(cell, modules, *LATER)):
        for thread in imports():
            thread.join()
    assert not set(LATER) & sys.modules.keys()


def test_no_module_is_begun_after_the_load(modules: Path) -> None:
    (modules / "later_first.py").write_text("import time\ntime.sleep(0.2)\n")
    with imported_ahead(drive(CELL, modules, *LATER)):
        while "later_first" not in sys.modules:
            time.sleep(0.001)
    assert not imports()
    assert "later_second" not in sys.modules


def test_what_cannot_be_imported_is_left_to_who_uses_it(modules: Path) -> None:
    (modules / "later_first.py").write_text("raise ImportError\n")
    with imported_ahead(drive(CELL, modules, *LATER)):
        pass
    assert not imports()
    assert not set(LATER) & sys.modules.keys()


def test_no_thread_is_started_where_nothing_is_needed(modules: Path) -> None:
    with imported_ahead(drive(CELL, modules)):
        assert not imports()
