"""What a history keeps of a stored run."""

from collections.abc import Callable

from redline.errors import StoreError
from redline.history.over_runs import SeenRun, see
from redline.model import Cell
from redline.model.history import LeftOut
from redline.storage.archive import left_out
from redline.storage.runs import RunStore


def see_stored(store: RunStore, wanted: Callable[[Cell], bool]) -> SeenRun | LeftOut:
    """The wanted cells of a stored run, judged by today's rules; or why it is left out, if it cannot be read."""
    try:
        return see(store.run(), str(store.folder), wanted)
    except StoreError as error:
        return left_out(store.folder, error.message, store)
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:  # whatever the disk has
        return left_out(store.folder, f"its recordings are damaged: {error}", store)
