"""Paths: the catalogue, the suites, the cache, the runs, and this command itself."""

import os
import shutil
import sys
import time
from pathlib import Path

from redline.asking.shipped import is_shipped, shipped_project
from redline.errors import UsageError
from redline.files import is_folder
from redline.launching.builds import cache_in

RUNS = Path("runs")
"""The default folder of runs, in the current folder; names of runs begin with the date."""
_CHECKOUT = Path(__file__).resolve().parents[3]


def project(near: Path | None = None) -> Path:
    """Return the folder that holds `catalogue/`: above the suite, else the current folder or above, else our own.

    Ours is the checkout, or a copy of what is installed with Redline. A folder of another user counts only if it is the
    current folder: nobody asked for the commands of a folder above it. Raises UsageError if there is none.
    """
    starts = [Path.cwd()] if near in {None, Path()} else [near.resolve().parent, Path.cwd()]
    for start in starts if is_shipped() else [*starts, _CHECKOUT]:
        for folder in (start, *start.parents):
            if is_folder(folder / "catalogue") and (folder == start or _are_trusted(folder)):
                return folder
    if is_shipped():
        return shipped_project()
    raise UsageError(
        "there is no catalogue",
        hint="run redline inside a checkout of it, or beside a folder `catalogue/` with servers of your own",
    )


def _are_trusted(folder: Path) -> bool:
    """Whether the catalogue and the suites of a folder belong to this user or to root."""
    owned = [folder / name for name in ("catalogue", "suites") if os.path.lexists(folder / name)]
    return all(path.stat().st_uid in (0, os.geteuid()) for path in owned)


def projects(near: Path | None = None) -> tuple[Path, ...]:
    """Return the folders whose catalogues are merged: the nearest, and ours. Raises UsageError if there is none."""
    nearest = project(near)
    if is_shipped():
        return tuple(dict.fromkeys((nearest, shipped_project())))
    own = [_CHECKOUT] if is_folder(_CHECKOUT / "catalogue") else []
    return (nearest, *(folder for folder in own if folder != nearest.resolve()))


def is_built_in(folder: Path) -> bool:
    """Whether a folder holds our own catalogue, not a user's."""
    return folder.resolve() == (shipped_project() if is_shipped() else _CHECKOUT).resolve()


def suites(near: Path | None = None) -> tuple[Path, ...]:
    """Return the suites of the current folder and beside the catalogues; if several have a name, the nearest."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys((Path.cwd(), *projects(near))):
        for file in sorted((folder / "suites").glob("*.yaml")):
            named.setdefault(file.name, file)
    return tuple(named.values())


def ready_suite(file: Path) -> Path:
    """Return the file, or else the ready suite of that name, such as `quickstart` or `suites/quickstart.yaml`."""
    named = file.name if file.parent == Path("suites") else f"{file}.yaml" if file.parent == Path() else ""
    if not named or file.is_file():
        return file
    return next((suite for suite in suites() if suite.name == named), file)


def of_suite(near: Path | None = None) -> tuple[Path, Path]:
    """Return the folder of the nearest catalogue, and its cache."""
    folder = project(near)
    return folder / "catalogue", cache_in(folder)


def own() -> tuple[Path, Path]:
    """Return the folder and the cache of our own catalogue, whatever the current folder has. Raises UsageError."""
    folder = shipped_project() if is_shipped() else project(Path(__file__))
    return folder / "catalogue", cache_in(folder)


def new_run(suite: str) -> Path:
    """`runs/20261121-014501-quickstart`, in the current folder; local time."""
    return RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{suite}"


def own_name() -> str:
    """The name that runs this command again: `redline` if it is on the PATH, else its path."""
    called, on_path = Path(sys.argv[0]), shutil.which("redline")
    if not called.exists():  # `python -c` or a module called it
        return "redline"
    return "redline" if on_path and called.samefile(on_path) else os.path.relpath(called)
