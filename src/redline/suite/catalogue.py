"""`server.yaml` and `scenarios.yaml` -> Catalogue. Pure: texts in, frozen entries out."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import ValidationError

from redline.lazily import dataclass
from redline.model import Option, Scenario, ServerEntry
from redline.model.catalogue import FILLED_BY_THE_LAB, JDK, ON_PATH, UPSTREAM, as_written, is_among, names_in_braces
from redline.quantities import clip
from redline.schema.bodies import BODIES
from redline.schema.document import Path, parse_document
from redline.schema.scenario import ScenariosSchema
from redline.schema.server import EntrySchema, FamilySchema, SharedSchema
from redline.suite.validate.checking import Sheet, suggest
from redline.suite.validate.journeys import read_scenario
from redline.suite.validate.referenced_files import NO_FILES, Files

T = TypeVar("T")

_REFERENCE = "catalogue/README.md"
_FAMILY_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_REQUIRED_OF_A_BUILD = {
    "run": "[cargo, build, --release, --locked]",
    "inputs": "[Cargo.toml, Cargo.lock, src/**]",
    "outputs": "[target/release/server]",
}


@dataclass(frozen=True)
class Catalogue:
    """All servers by their full name `family.name`, and the scenarios that any suite may name."""

    servers: dict[str, ServerEntry] = field(default_factory=dict)
    scenarios: dict[str, Scenario] = field(default_factory=dict)

    def over(self, other: "Catalogue") -> "Catalogue":
        """The entries of both catalogues, in this order. For a name in both, this catalogue's entry counts."""
        return Catalogue(servers=_first(self.servers, other.servers), scenarios=_first(self.scenarios, other.scenarios))


def _first(own: dict[str, T], others: dict[str, T]) -> dict[str, T]:
    return own | {name: value for name, value in others.items() if name not in own}


def read_family(text: str, file: str, family_folder: str) -> dict[str, ServerEntry]:
    """The servers of one `server.yaml`, by full name. Raises UsageError with everything that is wrong with the file.

    `family_folder` is the folder that holds the file; its last part is the family's name.
    """
    sheet = Sheet(parse_document(text, file), FamilySchema, _REFERENCE)
    sheet.read(FamilySchema)
    family_name = PurePosixPath(family_folder).name
    if not _FAMILY_NAME.fullmatch(family_name):
        sheet.wrong(
            (), f"the folder's name `{family_name}` cannot be a family", "use lower-case letters, digits, - and _"
        )
    shared = _shared(sheet)
    entries = {}
    for path, written in sheet.sound_items(EntrySchema, ("servers",)):
        for entry in _entries(sheet, path, family_folder, shared, written) if shared else ():
            entries[entry.name] = entry
    sheet.raise_problems()
    return entries


def read_scenarios(text: str, file: str, files: Files = NO_FILES) -> dict[str, Scenario]:
    """The scenarios of `scenarios.yaml`, by name. Raises UsageError with everything that is wrong with the file."""
    sheet = Sheet(parse_document(text, file), ScenariosSchema, _REFERENCE, {BODIES: files.body})
    schema = sheet.read(ScenariosSchema)
    scenarios = {}
    for name, written in schema.scenarios.items() if schema else ():
        scenario = read_scenario(sheet, ("scenarios", name), name, written, files)
        check_against(sheet, ("scenarios", name), name, written.against, tuple(schema.scenarios) if schema else ())
        if scenario is not None:
            scenarios[name] = scenario
    sheet.raise_problems()
    return scenarios


def check_against(sheet: Sheet, path: Path, name: str, against: str | None, known: tuple[str, ...]) -> None:
    """Note a scenario that is compared with itself, or with a scenario that neither file has."""
    if against == name:
        sheet.wrong((*path, "against"), f"`{name}` is compared with itself", "name a simpler scenario, or remove it")
    elif against is not None and against not in known:
        hint = suggest(against, known, "there is")
        sheet.wrong((*path, "against"), f"there is no scenario `{clip(against)}` to compare it with", hint)


def _shared(sheet: Sheet) -> SharedSchema | None:
    """The keys at the top of the file, for all servers; None if they are wrong."""
    content = sheet.document.value
    top = (
        {key: value for key, value in content.items() if key in SharedSchema.model_fields}
        if isinstance(content, dict)
        else None
    )
    try:
        return SharedSchema.model_validate(top)
    except ValidationError:
        return None


def _entries(
    sheet: Sheet, path: Path, folder: str, shared: SharedSchema, written: EntrySchema
) -> Iterator[ServerEntry]:
    """Yield a server with the keys that it inherits from its family, and its versions; none after noting a problem."""
    known_before = len(sheet.problems)
    values = _with_shared(written, shared)
    options = {name: Option.model_validate(option) for name, option in values["options"].items()}
    _check_required(sheet, path, values)
    _check_defaults(sheet, path, options, written)
    _check_placeholders(sheet, path, written, options)
    _check_versions(sheet, path, written, values)
    if len(sheet.problems) > known_before:
        return
    name, versions = f"{PurePosixPath(folder).name}.{path[-1]}", values.pop("versions")
    entry = ServerEntry.model_validate({**values, "name": name, "family_folder": folder})
    _check_protocols(sheet, path, entry)
    if len(sheet.problems) > known_before:
        return
    target, own = values["build"].get("target"), next(iter(versions.values()), "")
    yield entry.built_as(target) if target else entry
    for label, version in versions.items():
        versioned = target if version == own else f"{target}@{version}"
        yield entry.at_version(label, version, own).built_as(versioned)


def _check_required(sheet: Sheet, path: Path, values: Mapping[str, Any]) -> None:
    missing = {f"build.{key}": text for key, text in _REQUIRED_OF_A_BUILD.items() if key not in values["build"]}
    if "runtime" not in values:
        missing["runtime"] = "native"
    for key, example in missing.items():
        hint = f"add it, such as `{key.removeprefix('build.')}: {example}`"
        sheet.wrong(path, f"`{key}` is missing, here and at the top", hint, key=True)


def _with_shared(own: EntrySchema, shared: SharedSchema) -> dict[str, Any]:
    """The keys written for a server. Its own keys override its family's."""
    values, top = own.model_dump(exclude_none=True), shared.model_dump(exclude_none=True)
    merged = {key: top.get(key, {}) | values.get(key, {}) for key in ("build", "ready", "stop", "options", "versions")}
    return {**top, **values, **merged}


def _check_defaults(sheet: Sheet, path: Path, options: dict[str, Option], written: EntrySchema) -> None:
    for name, option in options.items():
        if not is_among(option.default, option.values):
            where = (*path, "options", name, "default") if name in written.options else ("options", name, "default")
            values = ", ".join(map(as_written, option.values))
            message = f"the default `{as_written(option.default)}` is not among the values"
            sheet.wrong(where, message, f"choose one of: {values}", once=True)


def _check_placeholders(sheet: Sheet, path: Path, written: EntrySchema, options: dict[str, Option]) -> None:
    known = (*FILLED_BY_THE_LAB, "target", *options)
    texts: list[tuple[Path, str]] = [
        ((*path, "start", "command", i), text) for i, text in enumerate(written.start.command)
    ]
    texts += [((*path, "start", "env", name), text) for name, text in written.start.env.items()]
    used = {name for _, text in texts for name in names_in_braces(text)}
    for where, text in texts:
        for name in names_in_braces(text):
            if name not in known:
                message = f"`{{{name}}}` is not a placeholder that the lab fills in"
                sheet.wrong(where, message, suggest(name, known, "known here"))
    if "port" not in used:
        sheet.wrong(
            (*path, "start", "command"), "the server does not get its port", "use `{port}` in `command` or `env`"
        )
    _check_jdk(sheet, path, options, written, used)
    for name in options:
        if name not in used and name != JDK:
            hint = f"use `{{{name}}}` in `command` or `env`, or remove the option"
            sheet.wrong((*path, "start"), f"the option `{name}` never reaches the server", hint, key=True)


def _check_versions(sheet: Sheet, path: Path, written: EntrySchema, values: Mapping[str, Any]) -> None:
    """Check that the builds of several versions do not overwrite each other, and that `{target}` has a value."""
    build, where = values["build"], path if written.versions else ()
    texts = (*build.get("outputs", ()), *written.start.command, *written.start.env.values())
    if "target" not in build and (values["versions"] or any("{target}" in text for text in texts)):
        hint = "add it, such as `target: server`: it is appended to `run`"
        sheet.wrong(path, "versions and `{target}` need `build.target`", hint, key=True)
    elif values["versions"] and not all("{target}" in text for text in build.get("outputs", ())):
        message = "the builds of these versions would overwrite each other's outputs"
        sheet.wrong((*where, "versions"), message, "use `{target}` in all of `build.outputs`", key=True, once=True)


def _check_protocols(sheet: Sheet, path: Path, entry: ServerEntry) -> None:
    """Check that `{protocol}` and the placeholders of a proxy's upstream match the keys that define them."""
    texts = (*entry.start.command, *entry.start.env.values())
    used = {name for text in texts for name in names_in_braces(text)}
    start = (*path, "start")
    if entry.needs_protocol and "protocol" not in used:
        message = f"{entry.name} does not get the protocol that it has to serve, one of {', '.join(entry.protocols)}"
        sheet.wrong(start, message, "use `{protocol}` in `command` or `env`", key=True)
    if entry.kind == "server":
        if entry.upstream:
            sheet.wrong(path, "`upstream` is for proxies", "add `kind: proxy`, or remove it", key=True)
        for name in sorted(used.intersection(UPSTREAM)):
            sheet.wrong(start, f"`{{{name}}}` is filled in for proxies alone", "add `kind: proxy`", key=True)
        return
    if not entry.upstream:
        message = "`upstream` is missing: what the proxy can speak to the server behind it"
        sheet.wrong(path, message, "add it, such as `upstream: [h1]`", key=True)
    needed = ["upstream_host", "upstream_port", *(["upstream_protocol"] if len(entry.upstream) > 1 else [])]
    for name in needed:
        if name not in used:
            hint = f"use `{{{name}}}` in `command` or `env`"
            sheet.wrong(start, f"the proxy does not get `{name}`", hint, key=True)


def _check_jdk(
    sheet: Sheet, path: Path, options: dict[str, Option], written: EntrySchema, used: AbstractSet[str]
) -> None:
    """Check that `{java}` and the option `jdk` occur together: the option decides what `{java}` is."""
    option = options.get(JDK)
    if option is None:
        if "java" in used:
            message = f"`{{java}}` is the `java` of the JDK of the option `{JDK}`, which is missing"
            sheet.wrong(
                (*path, "start"), message, "add it, such as `jdk: {values: [17, 21, 25], default: 21}`", key=True
            )
        return
    if "java" not in used:
        hint = "use `{java}` in place of `java` in `command`, or remove the option"
        sheet.wrong((*path, "start"), f"the option `{JDK}` never reaches the server", hint, key=True)
    for index, value in enumerate(option.values):
        if value != ON_PATH and (not isinstance(value, int) or isinstance(value, bool)):
            where = (*path, "options") if JDK in written.options else ("options",)
            message, hint = (
                f"`{as_written(value)}` is not a feature release of Java",
                f"write whole numbers, such as 21, or `{ON_PATH}`",
            )
            sheet.wrong((*where, JDK, "values", index), message, hint, once=True)
