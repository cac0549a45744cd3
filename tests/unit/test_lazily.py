"""What a package offers is imported when it is used, and a command imports what it uses."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import redline
from redline.lazily import LateModule, homes_of

ROOT = Path(redline.__file__).parent
OFFERING = sorted(
    file for file in ROOT.rglob("__init__.py") if "offered(__name__)" in file.read_text() and file.parent != ROOT
)


def package_of(file: Path) -> str:
    return ".".join(("redline", *file.parent.relative_to(ROOT).parts))


@pytest.mark.parametrize("file", OFFERING, ids=package_of)
def test_a_package_offers_what_readers_and_type_checkers_see(file: Path) -> None:
    package, homes = import_module(package_of(file)), homes_of(file.read_text())
    seen = [
        alias.asname or alias.name
        for block in ast.parse(file.read_text()).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    ]
    assert sorted(homes) == sorted(seen) != []
    for name, (home, original) in homes.items():
        assert getattr(package, name) is getattr(import_module(home), original)


@pytest.mark.parametrize("file", OFFERING, ids=package_of)
def test_no_name_is_that_of_a_module_beside_it(file: Path) -> None:
    """The import system would put the module in its place."""
    beside = {path.stem for path in file.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not beside & homes_of(file.read_text()).keys()


def test_a_name_that_is_not_offered_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'redline\.model' has no attribute 'Nothing'"):
        import_module("redline.model").Nothing  # noqa: B018 - it raises
    with pytest.raises(ImportError, match="Nothing"):
        exec("from redline.model import Nothing")


NOT_OF_A_LOAD = {
    "analysis.build",
    "history",
    "limits.search_state",
    "cli.build_view",
    "model.limits",
    "model.report",
    "extras.peers.adapters",
    "extras.hosts.agent",
    "launching.compose",
    "launching.process",
    "extras.profiling.machine",
    "launching.revisions",
    "render.renderers",
    "render.html",
    "running.duet",
    "running.searching",
    "running.session",
    "search.search",
    "extras.importing.formats",
}


AFTER_A_LOAD = {
    "analysis.intervals",
    "analysis.judging",
    "analysis.results",
    "document.blocks",
    "findings.rules",
    "findings.warming",
    "model.cell_report",
    "model.load_result",
    "render.terminal",
    "report.load",
    "stats.estimate",
    "watching.gc_traces",
    "watching.jvm",
}
"""What judges a load and shows its answer, and what only some servers need: the load begins without them."""


def test_a_load_does_not_import_what_it_does_not_use() -> None:
    script = "import sys; from redline.cli.main import leave_out_plugins; leave_out_plugins(); "
    script += "import redline.cli.commands.load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    imported = set(done.stdout.split())
    assert not {f"redline.{name}" for name in NOT_OF_A_LOAD} & imported
    assert not {"jinja2", "jsonschema", "numpy", "psutil", "rich.progress", "scipy", "ssl"} & imported
    assert not {"importlib.metadata", "ruamel.yaml"} & imported
    assert not {f"redline.{name}" for name in AFTER_A_LOAD} & imported
    for name in NOT_OF_A_LOAD | AFTER_A_LOAD:
        import_module(f"redline.{name}")


@pytest.mark.parametrize("command", ["ab", "run"])
def test_servers_are_compared_before_what_judges_them_is_imported(command: str) -> None:
    script = "import sys; from redline.cli.main import leave_out_plugins; leave_out_plugins(); "
    script += (
        f"import redline.cli.commands.{command}, redline.running.duet, redline.running.executors; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    judging = {
        "analysis.compare",
        "analysis.results",
        "findings.rules",
        "model.report",
        "report.single",
        "stats.samples",
    }
    assert not {"numpy", *(f"redline.{name}" for name in judging)} & set(done.stdout.split())


def test_pydantic_finds_what_it_wants_besides_plugins() -> None:
    script = (
        "from redline.cli.main import leave_out_plugins; leave_out_plugins(); import pydantic; "
        "from pydantic.plugin._loader import get_plugins, PYDANTIC_ENTRY_POINT_GROUP as group; "
        "print([*get_plugins()], group)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[] pydantic\n"


def test_a_late_module_is_imported_when_it_is_used() -> None:
    script = (
        "import sys; from redline.lazily import LateModule; late = LateModule('colorsys'); "
        "print('colorsys' in sys.modules, late.rgb_to_hls(0.0, 0.0, 0.0)[1], 'colorsys' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False 0.0 True\n"
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = LateModule("colorsys").no_such_name


@pytest.mark.parametrize(("before", "left"), [({}, None), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_numpy_gets_one_thread_whenever_it_is_imported_unless_the_user_said_how_many(
    before: dict[str, str], left: str | None
) -> None:
    script = (
        "import os; from redline.cli.main import keep_numpy_to_one_thread as keep; keep(); import numpy; "
        "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | before
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True, env=env
    )
    threads = min(int(left or 1), os.cpu_count() or 1)
    assert done.stdout == f"{threads} {left}\n"
