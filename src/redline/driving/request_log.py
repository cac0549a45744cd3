"""The log of single requests that the engine writes: a file of rows for each worker, read as columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from redline.errors import DriveError
from redline.model import Outcomes

_MAGIC = b"RLREQS1\n"
_HEADER = np.dtype([("magic", "S8"), ("level", "<u8"), ("ended", "<u8")])
_ROW = np.dtype(
    [
        *((name, "<i8") for name in ("due", "written", "first", "end")),
        ("seq", "<u8"),
        ("request", "<u4"),
        ("status", "<u2"),
        ("outcome", "u1"),
        ("rank", "u1"),
    ]
)
_OUTCOMES = tuple(Outcomes.model_fields)
Column = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LoggedRequests:
    """Requests of a measurement in the order in which they were due: `rows` of `ended` ones, each for `one_of` of them.

    Times are nanoseconds since the schedule's epoch; -1 where there is none.
    """

    rows: Column
    ended: int
    one_of: int

    def columns(self, epoch_unix_ns: int, names: tuple[str, ...]) -> Mapping[str, Column]:
        """The columns of the file, with times since 1970. A masked value is unknown.

        `names` are what results call the requests. `docs/reference/exports.md` is the contract.
        """
        rows = self.rows
        times = {
            f"{column}_unix_ns": np.ma.masked_where(rows[name] == -1, rows[name] + epoch_unix_ns)
            for column, name in (("due", "due"), ("written", "written"), ("first_byte", "first"), ("end", "end"))
        }
        return {
            **times,
            "request": np.array(names, dtype=object)[rows["request"]],
            "seq": np.ma.masked_where(rows["written"] == -1, rows["seq"].astype(np.int64)),
            "outcome": np.array(_OUTCOMES, dtype=object)[rows["outcome"]],
            "status": np.ma.masked_where(rows["status"] == 0, rows["status"].astype(np.int64)),
            "one_of": np.full(len(rows), self.one_of, dtype=np.int64),
        }


def read_logged(folder: Path) -> LoggedRequests:
    """What the workers of an engine wrote into a folder. Raises DriveError for another format."""
    parts = [_read(file) for file in sorted(folder.glob("*.rows"))]
    level = max((level for level, _, _ in parts), default=0)
    kept = [rows[rows["rank"] >= level] for _, _, rows in parts]
    rows = np.concatenate(kept) if kept else np.empty(0, _ROW)
    return LoggedRequests(rows[np.argsort(rows["due"], kind="stable")], sum(ended for _, ended, _ in parts), 1 << level)


def _read(file: Path) -> tuple[int, int, Column]:
    content = file.read_bytes()
    if content[:8] != _MAGIC or (len(content) - _HEADER.itemsize) % _ROW.itemsize:
        hint = "engine and lab have to be of the same version"
        raise DriveError(f"{file.name} is no log of requests of this version", hint=hint)
    (header,) = np.frombuffer(content, _HEADER, count=1)
    return int(header["level"]), int(header["ended"]), np.frombuffer(content, _ROW, offset=_HEADER.itemsize)
