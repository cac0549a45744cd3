"""Cells as they were judged, beside the recordings that they rest on: `judged/CELL.json`. A cache.

A file counts only for the recordings, the plan's part and the rules that its key is made of, and only if it is whole.
Anything else in its place is as good as nothing, and so is a folder that cannot be written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from redline.files import read_regular
from redline.lazily import LateModule

if TYPE_CHECKING:
    import numpy as np

    from redline.analysis import stored_cell
    from redline.analysis.judging import CellTask
else:
    np, stored_cell = LateModule("numpy"), LateModule("redline.analysis.stored_cell")

FOLDER = "judged"
_FORMAT = "redline.judged/1"
_MOST_BYTES = 64 << 20
_RULES = ("model", "stats", "findings", "analysis", "suite", "quantities.py", "visible.py", "errors.py")
"""The code by which a cell is judged."""


@cache
def rules_version() -> str:
    """The version of the rules: a hash of the code that judges; empty where the code is not at hand."""
    root = Path(__file__).parents[1]
    files = sorted(
        file for name in _RULES for file in (root.glob(name) if "." in name else root.glob(f"{name}/**/*.py"))
    )
    digest = blake2b(f"{_FORMAT} {np.__version__} {pydantic.__version__}".encode(), digest_size=16)
    try:
        for file in files:
            digest.update(f"\0{file.relative_to(root)}\0".encode())
            digest.update(file.read_bytes())
    except OSError:
        return ""
    return digest.hexdigest() if files else ""


def key_of(task: CellTask, recordings: Iterable[bytes]) -> str:
    """All that a judged cell rests on but the length of its timelines' steps: rules, plan and recordings.

    Empty where nothing can be kept, as the version of the rules is not known.
    """
    if not rules_version():
        return ""
    suite = task.suite
    plain = [
        rules_version(),
        task.planned,
        task.ceiling_per_s,
        task.detail.middle_only,
        sorted(task.settings.items()),
        suite.baseline,
        sorted(suite.baselines.items()),
        [objective.model_dump(mode="json") for objective in suite.objectives],
        [trial.model_dump(mode="json") for trial in task.trials],
    ]
    digest = blake2b(json.dumps(plain).encode(), digest_size=16)
    digest.update(task.cell.model_dump_json().encode())
    for content in recordings:
        digest.update(blake2b(content, digest_size=16).digest())
    return digest.hexdigest()


class JudgedStore:
    """The judged cells of a run's directory."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER

    def read(self, task: CellTask, key: str) -> bytes | None:
        """The cell of this key in timelines as fine as the task wants them; None if it is not there as it was kept."""
        try:
            head, _, content = read_regular(self._file(task), _MOST_BYTES).partition(b"\n")
            kept = json.loads(head)
            made = stored_cell.EncodedCell(content, kept["steps"], tuple(kept["intervals"]))
            whole = kept["key"] == key and kept["hash"] == _hash(content) and made.fits(task)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return content if whole else None

    def keep(self, task: CellTask, key: str, made: stored_cell.EncodedCell) -> None:
        """Keep a judged cell if that can be done, in place of what was kept before."""
        head = {"key": key, "hash": _hash(made.content), "steps": made.steps, "intervals": made.intervals}
        file = self._file(task)
        scratch = file.with_name(f".{file.name}.{os.getpid()}.part")
        with contextlib.suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            if self.folder.is_symlink():
                return
            try:
                scratch.unlink(missing_ok=True)
                with scratch.open("xb") as out:
                    out.write(json.dumps(head).encode() + b"\n" + made.content)
                scratch.replace(file)
            finally:
                scratch.unlink(missing_ok=True)

    def _file(self, task: CellTask) -> Path:
        return self.folder / f"{task.cell_id}.json"


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
