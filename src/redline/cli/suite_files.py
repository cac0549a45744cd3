"""`--write-suite`: write what flags ask for as a suite, and measure nothing."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TypeVar

from rich.console import Console

from redline.asking import places
from redline.asking.asks import ComparisonAsk, LoadAsk, SearchAsk
from redline.asking.catalogues import catalogue_of
from redline.asking.origins import FromRepository
from redline.asking.project import folder_of
from redline.asking.ways import Placed
from redline.asking.written import read_written
from redline.cli.command_line import TelemetryFlags, TraceFlags
from redline.cli.declaring import ProgressFlags
from redline.cli.project_builds import builds_of
from redline.errors import UsageError
from redline.files import as_store_error, write_atomically
from redline.schema.document import Document
from redline.suite import referenced_files
from redline.suite.project import Project
from redline.suite.validate.referenced_files import with_files, with_server_files
from redline.wording import as_argument, part

_OUTPUT = ("output", "log", "resume", "fail_on", "form", "json", "stream", "spectrum")
_MACHINE = ("wait_quiet", "wait", "alone", "mine", "on")
_TELEMETRY = TelemetryFlags.declared().keys() | TraceFlags.declared().keys()
OF_MEASURING = frozenset((*_OUTPUT, *_MACHINE, *(_TELEMETRY - ProgressFlags.declared().keys())))
"""Flags that mean nothing where nothing is measured."""
WHY = "--write-suite measures nothing, and takes no"
A = TypeVar("A", LoadAsk, ComparisonAsk, SearchAsk)


def write_suite(
    ask: A,
    file: Path,
    project: Project | None,
    made: Callable[[A, Placed, Project | None], Mapping[str, object]],
    console: Console,
    command: Sequence[str] = ("run",),
    differs: Sequence[str] = (),
) -> None:
    """Write the suite that is `made` of what is asked for, after checking that it can be read. Raises RedlineError.

    `command` is what measures it, and `differs` says what it measures otherwise.
    """
    if ask.recorded is not None:
        imported = f"redline import {as_argument(ask.replay)} -o requests.yaml --times times.txt"
        hint = f"write its list and times first: {imported}"
        raise UsageError(part("replay", ask.replay) + ": a suite names files of due times", hint=hint)
    if file.exists():
        raise UsageError(f"{file} exists already", hint="give another name, or remove it")
    placed, folder = partial(os.path.relpath, start=file.parent), file.parent.resolve()
    if ask.requests is not None and ask.listed is not None:
        beside = ask.requests.parent
        listed = with_files(ask.listed.document, lambda name: placed(str(beside / name)))
        ask = replace(ask, listed=ask.listed._replace(document=listed))
    if project is not None:
        project = replace(project, document=_relocated(project, placed))
    document = made(ask, placed, project)
    origins, known = FromRepository(folder).origins(), catalogue_of(document, folder)
    _, text = read_written(document, str(file), referenced_files(file), origins, catalogue=known)
    name, *flags = command
    measured_by = shlex.join([places.own_name(), name, str(file), *flags])
    builds = builds_of(project) if project is not None else ()
    said: list[str] = [f"# Measure it with: {measured_by}"]
    said += [f"# What differs: {text}" for text in differs]
    said += [f"# Built by: {line}" for text in builds for line in text.splitlines()]
    with as_store_error(file, begun=False):
        write_atomically(file, "\n".join([*said, text]).encode())
    warned = [f"measured by {file}, {text}" for text in differs]
    if project is not None and builds:
        warned.append(f"{file} does not build its servers, as {project.document.file} does: see its first lines")
    for message in warned:
        console.print(message, style="yellow", soft_wrap=True, highlight=False, markup=False)
    console.print(f"measure it with: {measured_by}", soft_wrap=True, highlight=False, markup=False)


def _relocated(project: Project, placed: Placed) -> Document:
    """What redline.yaml holds, with the names of its files as a suite elsewhere has them."""
    folder = PurePath(folder_of(project))

    def rename(name: str) -> str:
        return placed(str(folder / name))

    return with_server_files(with_files(project.document, rename), rename)
