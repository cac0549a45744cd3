"""Suites for `run`: of a file, or of data that a program made."""

import os
from collections.abc import Mapping
from pathlib import Path

from redline.asking import places
from redline.asking.asks import SuiteAsk
from redline.asking.catalogues import read_catalogue
from redline.asking.origins import FromRepository
from redline.asking.suites import no_suite, read_overrides, read_suite_file
from redline.asking.written import read_written
from redline.errors import UsageError
from redline.git import outside_the_callers_repository
from redline.model import Suite
from redline.schema.document import plain_data
from redline.suite import referenced_files


class WrittenSuite:
    """A suite, checked as a whole: what `from redline import Suite` gives.

    `file` is where it was read, or None. `folder` is where its commands run and its files are. `text` is its YAML.
    """

    def __init__(self, name: str, folder: Path, file: Path | None, document: dict[str, object] | None) -> None:
        self.name, self.folder, self.file, self._document = name, folder, file, document
        suite, self.text = self.resolved(SuiteAsk())
        self.servers = tuple(variant.slug for variant in suite.variants)
        self.scenarios = tuple(scenario.name for scenario in suite.scenarios)
        self.loads = tuple(load.name for load in suite.loads)

    @classmethod
    def read(cls, file: str | Path) -> "WrittenSuite":
        """The suite of a YAML file, a redline.yaml, or a ready suite by its name.

        Raises UsageError with everything that is wrong with it.
        """
        path = places.ready_suite(Path(file))
        if not path.exists():
            raise no_suite(os.fspath(file))
        return cls(path.stem, path.resolve().parent, path, None)

    @classmethod
    def from_dict(cls, document: Mapping[str, object], name: str = "suite", folder: str | Path = ".") -> "WrittenSuite":
        """The suite of data as a file has it: mappings, lists, texts and numbers.

        Raises UsageError with everything that is wrong with it.
        """
        data = plain_data(document, "the suite")
        if not isinstance(data, dict):
            raise UsageError("the suite is not a mapping", hint="give servers, scenarios and loads, as a file has them")
        return cls(name, Path(folder).resolve(), None, dict(data))

    def __repr__(self) -> str:
        return f"<Suite {self.name}: servers {self.servers}, scenarios {self.scenarios}, loads {self.loads}>"

    def resolved(self, ask: SuiteAsk) -> tuple[Suite, str]:
        """The suite, changed as is asked, and its text. Raises UsageError."""
        with outside_the_callers_repository():
            if self.file is not None:
                return read_suite_file(self.file, ask)
            return suite_of_data({**(self._document or {})}, self.name, self.folder, ask)

    def write(self, file: str | Path) -> Path:
        """Write its YAML to a new file, for `redline run`. Gives its path. Raises UsageError if there is one."""
        path = Path(file)
        try:
            with path.open("x") as out:
                out.write(self.text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}", hint="name a new file") from None
        return path


def suite_of_data(document: Mapping[str, object], name: str, folder: Path, ask: SuiteAsk) -> tuple[Suite, str]:
    """The suite of values in a folder, changed as is asked, and its text. Raises UsageError."""
    near = folder / "suite.yaml"
    origins, files = FromRepository(folder).origins(), referenced_files(near)
    return read_written(document, name, files, origins, read_overrides(ask), read_catalogue(near))
