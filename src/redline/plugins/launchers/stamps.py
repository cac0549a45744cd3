"""What tells that a build stands: its content hash, and its outputs as the build left them."""

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from redline.model.base import Frozen
from redline.plugins.launchers.files import replace_text


class Mark(Frozen):
    """Tells whether an output is still the one that the build left."""

    size: int
    mtime_ns: int


class Stamp(Frozen):
    """What a build was made from and what it left."""

    format: Literal["redline.stamp/1", "redline.build/1"] = "redline.stamp/1"
    """The second is what it was called at first."""
    hash: str
    outputs: dict[str, Mark]

    def write(self, file: Path) -> None:
        """Whole or not at all. Raises OSError."""
        replace_text(file, self.model_dump_json(indent=1))


def marks(folder: Path, outputs: tuple[str, ...]) -> dict[str, Mark]:
    """The outputs that are there."""
    found = {}
    for name in outputs:
        with suppress(OSError):
            stat = (folder / name).stat()
            found[name] = Mark(size=stat.st_size, mtime_ns=stat.st_mtime_ns)
    return found


def read_stamp(file: Path) -> Stamp | None:
    """The stamp, or None when there is none or it is damaged: then it has to be built."""
    try:
        return Stamp.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
