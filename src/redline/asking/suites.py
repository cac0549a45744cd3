"""Suites that are asked for by their files, and the files that are known as something else."""

import io
import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from redline.asking import places
from redline.asking.asks import DETECTED, SearchAsk, SuiteAsk
from redline.asking.catalogues import catalogue_of, read_catalogue
from redline.asking.naming import naming
from redline.asking.origins import FromRepository, find_project, project_name, read_project_file
from redline.asking.project import in_its_words, run_document
from redline.asking.written import read_written
from redline.entry_points import extra_if_installed
from redline.errors import UsageError
from redline.model import Suite
from redline.quantities import did_you_mean, parse_duration
from redline.suite import Overrides, read_suite, read_text, referenced_files
from redline.suite.compose_services import is_compose_file
from redline.suite.imported import Foreign
from redline.suite.procfile import is_procfile
from redline.suite.project import PROJECT_FILE
from redline.suite.request_source import HEAD_BYTES, RequestSource
from redline.suite.urls import is_url
from redline.wording import advice, part

_FIRST_SUITE = "quickstart"
_URL = re.compile("https?:/")
_COMMAND = re.compile(r"[\s{]")
_OF_A_SUITE = re.compile(r"^(?:servers|loads|baseline)\s*:", re.MULTILINE)


def read_overrides(ask: SuiteAsk) -> Overrides:
    """Return the changes to a suite, which checks them later. Raises UsageError."""
    return Overrides(
        servers=ask.servers,
        options=ask.options,
        scenarios=ask.scenarios,
        loads=ask.loads,
        users=ask.users,
        duration_ns=None if ask.duration is None else _duration_ns("duration", ask.duration),
        warmup_ns=None if ask.warmup in (None, DETECTED) else _duration_ns("warmup", ask.warmup),
        warmup_detect=ask.warmup == DETECTED,
        trials=ask.trials,
        seed=ask.seed,
        quick=ask.quick,
        profile=ask.profile,
        screen=ask.screen,
        scale=None if ask.scale is None else _factor(str(ask.scale)),
    )


def of_search(ask: SearchAsk) -> SuiteAsk:
    """Return what a search asks of the suites that it names."""
    return SuiteAsk(
        servers=ask.servers,
        options=ask.options,
        scenarios=ask.scenarios,
        loads=ask.loads,
        duration=ask.duration,
        warmup=ask.warmup,
        seed=ask.seed,
        quick=ask.quick,
    )


def suite_or_project(named: Path | None) -> Path:
    """Return the named suite, else the redline.yaml of this folder. Raises UsageError with a hint what to do."""
    file = places.ready_suite(named) if named is not None else find_project(Path.cwd())
    if file is not None:
        if named is not None and not file.exists():
            raise no_suite(next((word for word in sys.argv if Path(word) == named), str(named)))
        return file
    ways = [
        "`redline init './server --port {port}'` writes that file",
        "`redline ab './old --port {port}' './new --port {port}'` compares two servers without a file",
        *([f"`redline run {_FIRST_SUITE}` runs a ready suite"] if _has_first_suite() else []),
    ]
    raise UsageError(
        f"no suite is named, and there is no {PROJECT_FILE} here or above", hint=advice("no suite", "; ".join(ways))
    )


def _check_is_a_suite(file: Path, text: str) -> None:
    """Raise UsageError for a file that is known as something else than a suite."""
    if not _OF_A_SUITE.search(text) and (foreign := _kind_of(str(file), text.encode())):
        raise UsageError(f"{file} is {foreign.what}, not a suite", hint=foreign.hint)


def check_is_no_file(target: str) -> None:
    """Raise UsageError for a file where a server belongs, unless it is a program."""
    file = Path(target)
    if is_url(target) or "{" in target or not file.is_file() or os.access(file, os.X_OK):
        return
    with file.open("rb") as opened:
        foreign = _kind_of(target, opened.read(HEAD_BYTES))
    hint = f"give a URL or a command; a suite is run by `redline run {shlex.quote(target)}`"
    what, hint = foreign or ("a file", hint)
    raise UsageError(f"{target} is {what}, not a server", hint=hint)


def _kind_of(name: str, content: bytes) -> Foreign | None:
    """What a file is, by its name or its content, and what to do with it; None if it is not known."""
    kinds = {
        "a recording of a browser": name.lower().endswith(".har"),
        "a Procfile": is_procfile(name),
        "a compose file": is_compose_file(name),
        "a package of Node": Path(name).name == "package.json",
    }
    if kind := next((kind for kind, is_it in kinds.items() if is_it), None):
        return Foreign(kind, f"`redline init {shlex.quote(name)}` makes a redline.yaml of it; then leave it out here")
    importing = extra_if_installed("importing")
    with suppress(UsageError):
        if importing is not None:
            foreign: Foreign | None = importing.kind_of(
                RequestSource(name, io.BytesIO(content[:HEAD_BYTES]), lambda _: b"")
            )
            return foreign
    return None


def no_suite(named: str) -> UsageError:
    """Return the error for a word that names no file: it may be a server, or a misspelt name of a ready suite."""
    if _URL.match(named):
        url = re.sub(":/+", "://", named, count=1)  # as a path, it has lost a slash
        return UsageError(f"{url} is a server, and not a suite", hint=f"`redline load {url}` loads it")
    if foreign := _kind_of(named, b""):
        return UsageError(f"{named} is {foreign.what}, not a suite", hint=foreign.hint)
    if _COMMAND.search(named):
        hint = f"`redline init {shlex.quote(named)}` writes it into redline.yaml; then leave it out here"
        return UsageError(f"{named} is not a suite; is it a command?", hint=hint)
    hint = did_you_mean(named.removesuffix(".yaml"), _ready_suites()) or "check the path; `redline list` shows suites"
    return UsageError(f"there is no file {named}", hint=hint)


def _ready_suites() -> tuple[str, ...]:
    """Return the names of ready suites; empty where there is no catalogue."""
    try:
        return tuple(file.stem for file in places.suites())
    except UsageError:
        return ()


def _has_first_suite() -> bool:
    """Whether the advised suite exists: beside a user's catalogue there may be none."""
    return _FIRST_SUITE in _ready_suites()


def read_suite_file(file: Path, ask: SuiteAsk) -> tuple[Suite, str]:
    """Return the suite of a file, or of a redline.yaml, changed as is asked, and its text. Raises UsageError."""
    if file.name == PROJECT_FILE:
        project, folder = read_project_file(file), file.resolve().parent
        if ask.quick:
            hint = (
                f"give {part('duration')} and {part('trials')}; servers are compared for less with a shorter `budget`"
            )
            raise UsageError(part("quick") + f": {file.name} does not say what is quick", hint=hint)
        document = run_document(project, ask.servers, ask.scenarios, ask.loads)
        origins, files = FromRepository(Path.cwd()).origins(), referenced_files(file)
        known = catalogue_of(document, folder)
        with in_its_words(project):
            return read_written(document, project_name(project), files, origins, read_overrides(ask), known)
    text, overrides = read_text(file), read_overrides(ask)
    _check_is_a_suite(file, text)
    origins = FromRepository(file.resolve().parent).origins()
    return read_suite(text, str(file), read_catalogue(file), overrides, referenced_files(file), origins), text


def _duration_ns(name: str, text: str) -> int:
    with naming(part(name, text)):
        return parse_duration(text)


def _factor(text: str) -> float:
    """Read a number above 0, or a percentage. Raises UsageError."""
    number = text.strip().removesuffix("%")
    try:
        factor = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        hint = f"write it like {part('scale', 0.2)}, or {part('scale', '20%')}"
        raise UsageError(part("scale", text) + " is not a factor", hint=hint)
    return factor
