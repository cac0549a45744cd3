"""`redline cache`: list what Redline keeps in the user's cache, or remove it."""

import shutil
from pathlib import Path

from rich.table import Table
from rich.text import Text

from redline.asking.shipped import COPIES, UNFINISHED, is_shipped, shipped_digest
from redline.cli.cached import CachedItem, kept
from redline.cli.command_line import CacheFlags
from redline.cli.show import Terminal
from redline.errors import StoreError
from redline.files import mend, user_cache
from redline.quantities import size


def execute(flags: CacheFlags) -> None:
    """List the cache, or remove its contents."""
    folder = user_cache()
    items = kept(folder)
    total = size(sum(item.size for item in items))
    if flags.clean:
        for item in items:
            _remove(item.path)
        Terminal().print(f"removed {total} from {folder}", highlight=False)
        return
    if items:
        Terminal().print(_table(items, folder))
    Terminal().print(f"{folder} holds {total}", highlight=False)


def _table(items: tuple[CachedItem, ...], folder: Path) -> Table:
    current = shipped_digest() if is_shipped() else ""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for item in items:
        note = ""
        if item.path.parent.name == COPIES:
            note = "the catalogue of another version"
            if item.path.name == current:
                note = "the installed catalogue"
            elif item.path.name.startswith(UNFINISHED):
                note = "an unfinished copy"
        table.add_row(Text(str(item.path.relative_to(folder))), Text(size(item.size)), Text(note, style="dim"))
    return table


def _remove(path: Path) -> None:
    """Remove a file or a folder. Raises StoreError."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{error.filename or path} cannot be removed: {error.strerror}", hint=mend(error)) from error
