"""Read flags by the rules of the same keys in suites. Errors name the flag."""

import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from redline.cli import places
from redline.cli.catalogues import proxies_of, read_catalogue
from redline.cli.command_line import AbFlags, HistoryFlags, LimitFlags, ReportFlags, SuiteFlags
from redline.cli.declaring import Flags
from redline.cli.origins import FromRepository, find_project, project_name, read_project_file
from redline.cli.project_document import in_its_words, run_document
from redline.cli.written import read_written
from redline.errors import UsageError, WrongValueError
from redline.model import Suite
from redline.plugins.drivers.protocol import MOST_WORKERS
from redline.plugins.secrets import masked, masked_call
from redline.quantities import did_you_mean, parse_duration
from redline.suite import Overrides, importing, read_suite, read_text, referenced_files
from redline.suite.importing.source import HEAD_BYTES, RequestSource
from redline.suite.project import PROJECT_FILE
from redline.suite.schema.suite import SuiteSchema
from redline.suite.urls import is_url
from redline.suite.validate.checking import first_mistake

DETECTED = "auto"
"""The value of a warm-up flag that lets the warm-up end when the server is steady."""
_FIRST_SUITE = "quickstart"
_URL = re.compile("https?:/")
_COMMAND = re.compile(r"[\s{]")
_OF_A_SUITE = re.compile(r"^(?:servers|loads|baseline)\s*:", re.MULTILINE)


@contextmanager
def naming(flag: str) -> Iterator[None]:
    """Name the flag in errors from a block. Raises UsageError."""
    try:
        yield
    except (WrongValueError, UsageError) as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None


def read_flag(flag: str, value: object, key: str, schema: type[BaseModel] = SuiteSchema) -> Any:
    """Read a flag by the rules of a suite's key. Raises UsageError."""
    field = schema.model_fields[key]
    kind: Any = Annotated[field.annotation, field]
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        mistake = first_mistake(error, schema, (key,))
        raise UsageError(f"{flag} {value}: {mistake.message}", hint=mistake.hint) from None


def read_overrides(flags: SuiteFlags | LimitFlags) -> Overrides:
    """Return the changes that flags make to a suite, which checks them later. Raises UsageError."""
    overrides = Overrides(
        servers=split(flags.servers),
        options=tuple(map(_option, split(flags.options))),
        scenarios=split(flags.scenarios),
        loads=split(flags.loads),
        duration_ns=None if flags.duration is None else _duration_ns("-d", flags.duration),
        seed=flags.seed,
        quick=flags.quick,
        warmup_ns=None if flags.warmup in (None, DETECTED) else _duration_ns("--warmup", flags.warmup),
        warmup_detect=flags.warmup == DETECTED,
    )
    if isinstance(flags, LimitFlags):
        return overrides
    return replace(
        overrides,
        users=flags.users,
        trials=flags.trials,
        profile=split(flags.profile),
        screen=flags.screen,
        scale=None if flags.scale is None else _factor("--scale", flags.scale),
    )


def suite_or_project(named: Path | None) -> Path:
    """Return the named suite, else the redline.yaml of this folder. Raises UsageError with a hint what to do."""
    file = places.ready_suite(named) if named is not None else find_project(Path.cwd())
    if file is not None:
        if named is not None and not file.exists():
            raise _no_suite(next((word for word in sys.argv if Path(word) == named), str(named)))
        return file
    ways = [
        "`redline init './server --port {port}'` writes that file",
        "`redline ab './old --port {port}' './new --port {port}'` compares two servers without a file",
        *([f"`redline run {_FIRST_SUITE}` runs a ready suite"] if _has_first_suite() else []),
    ]
    raise UsageError(f"no suite is named, and there is no {PROJECT_FILE} here or above", hint="; ".join(ways))


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


def _kind_of(name: str, content: bytes) -> "importing.Foreign | None":
    """What a file is, by its name or its content, and what to do with it; None if it is not known."""
    kinds = {
        "a recording of a browser": name.lower().endswith(".har"),
        "a Procfile": importing.is_procfile(name),
        "a compose file": importing.is_compose_file(name),
        "a package of Node": Path(name).name == "package.json",
    }
    if kind := next((kind for kind, is_it in kinds.items() if is_it), None):
        return importing.Foreign(
            kind, f"`redline init {shlex.quote(name)}` makes a redline.yaml of it; then leave it out here"
        )
    with suppress(UsageError):
        return importing.kind_of(RequestSource(name, io.BytesIO(content[:HEAD_BYTES]), lambda _: b""))
    return None


def _no_suite(named: str) -> UsageError:
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


def read_suite_file(file: Path, flags: SuiteFlags | LimitFlags) -> tuple[Suite, str]:
    """Return the suite of a file, or of a redline.yaml, changed by the flags, and its text. Raises UsageError."""
    if file.name == PROJECT_FILE:
        project, folder = read_project_file(file), file.resolve().parent
        if flags.quick:
            hint = "give -d and --trials; servers are compared for less with a shorter `budget`"
            raise UsageError(f"--quick: {file.name} does not say what is quick", hint=hint)
        document = run_document(project, split(flags.servers), split(flags.scenarios), split(flags.loads))
        origins, files = FromRepository(Path.cwd()).origins(), referenced_files(file)
        known = proxies_of(document, folder)
        with in_its_words(project):
            return read_written(document, project_name(project), files, origins, read_overrides(flags), known)
    text, overrides = read_text(file), read_overrides(flags)
    _check_is_a_suite(file, text)
    origins = FromRepository(file.resolve().parent).origins()
    return read_suite(text, str(file), read_catalogue(file), overrides, referenced_files(file), origins), text


def refuse(flags: tuple[str, ...], why: str) -> None:
    """Raise UsageError if any of these flags is given, since they have no effect there."""
    if flags:
        named = ", ".join(flags)
        raise UsageError(f"{why} {named}", hint=f"leave out {named}; `--help` shows what each flag is for")


def form_of(flags: AbFlags | ReportFlags | HistoryFlags) -> str | None:
    """Return the format of a report. Raises UsageError if both `--json` and another `--format` are given."""
    if flags.json and flags.form not in (None, "json"):
        raise UsageError(f"--json and --format {flags.form} are two formats", hint="give either")
    return "json" if flags.json else flags.form


def command_line(flags: Flags) -> str:
    """Return the command as it was given, without secrets, or the call of Python that made the flags."""
    if flags.called:
        return masked_call(flags.called)
    return shlex.join(["redline", *masked(sys.argv[1:])])


def at_least_one(flag: str, number: int) -> int:
    """Return the number. Raises UsageError if it is below 1."""
    if number < 1:
        raise UsageError(f"{flag} {number} is not possible", hint=f"give {flag} a whole number from 1")
    return number


def read_workers(threads: int, connections: int) -> int:
    """Return the number of engine workers, each with at least one connection. Raises UsageError."""
    most = min(connections, MOST_WORKERS)
    if at_least_one("-t", threads) > most:
        message = f"-t {threads} is more than the {connections} connections, and each worker needs a connection"
        if most < connections:
            message = f"-t {threads} is more than {most} workers"
        raise UsageError(message, hint=f"give -t {most} or fewer")
    return threads


def _duration_ns(flag: str, text: str) -> int:
    with naming(f"{flag} {text}"):
        return parse_duration(text)


def _factor(flag: str, text: str) -> float:
    """Read a number above 0, or a percentage. Raises UsageError."""
    number = text.strip().removesuffix("%")
    try:
        factor = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise UsageError(f"{flag} {text} is not a factor", hint=f"write it like {flag} 0.2, or {flag} 20%")
    return factor


def _option(written: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in written.partition("="))
    if not (name and equals and value):
        raise UsageError(f"-w {written} is not an option with its value", hint="write it like -w interceptor=off")
    return name, value


def split(values: list[str] | None) -> tuple[str, ...]:
    """Split the values of a repeatable flag at commas, without empty parts."""
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
