"""`-o`: the directory in which a measurement is kept, or a file for its report in the format of its ending."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from redline.entry_points import extra
from redline.errors import UsageError
from redline.files import as_store_error, write_atomically
from redline.lazily import dataclass
from redline.render.formats import FILE_ENDINGS, Needs, ResultFormat
from redline.wording import part

if TYPE_CHECKING:  # what a load has at its end
    from redline.model.limits import AnyReport

_OF_FILES = frozenset({".txt", ".log", ".htm", ".yaml", ".yml", ".pdf", ".gif", ".jpg", ".zip", ".gz", ".tar"})
"""Endings of files, besides those of reports; a directory may well be called after a host or a version."""


@dataclass(frozen=True)
class Destination:
    """What stays of a measurement: a `folder`, or the `file` of a report; what else is kept is as without `-o`."""

    folder: Path | None = None
    file: Path | None = None
    form: ResultFormat | None = None

    @classmethod
    def at(cls, output: Path | None) -> "Destination":
        """Read `-o`. Raises UsageError for a file of no format.

        Also raises UsageError and StoreError for a file that is there already or could not be written.
        """
        ending = "" if output is None or output.is_dir() else output.suffix.lower()
        form = FILE_ENDINGS.get(ending)
        if output is None or (form is None and ending not in _OF_FILES):
            return cls(output)
        if form is None or form.needs is not Needs.REPORT:
            *endings, last = (ending for ending, form in FILE_ENDINGS.items() if form.needs is Needs.REPORT)
            hint = f"end it with {', '.join(endings)} or {last}, or name a directory, without an ending"
            raise UsageError(f"-o {output}: no report has this ending", hint=hint)
        if os.path.lexists(output):
            raise UsageError(f"{output} exists already", hint="give another name, or remove it")
        if form.is_binary:
            asked = part("keep", str(output))
            extra("exports", asked).library("pyarrow", asked)
        with as_store_error(output, begun=False):
            output.open("xb").close()
            output.unlink()
        return cls(None, output, form)

    @property
    def page(self) -> Path | None:
        """The page that stays, if any."""
        if self.form is not None and self.form.name == "html":
            return self.file
        return self.folder and self.folder / "report.html"

    def write(self, report: "AnyReport | None", console: Console) -> None:
        """Write the file, if one is named, and say where it is. Raises StoreError."""
        if self.file is None or self.form is None or report is None:
            return
        made = self.form.load()(report)
        with as_store_error(self.file, begun=False):
            write_atomically(self.file, made if isinstance(made, bytes) else b"".join(made))
        console.print(f"report: {self.file.resolve()}", soft_wrap=True, highlight=False, markup=False)
