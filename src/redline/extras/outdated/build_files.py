"""The versions that build files pin: pom.xml, *.sbt, Cargo.toml, package.json, requirements and go.mod."""

import json
import os
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from redline.cli.contracts import Registry
from redline.errors import UsageError
from redline.extras.outdated.versions import newest
from redline.quantities import clip
from redline.schema.document import parse_document

_NOT_SOURCES = {"target", "out", "node_modules", "venv", "site-packages", "vendor"}
_VERSION = re.compile(r"v?\d[\w.+-]*")
_PROPERTY = re.compile(r"\$\{([^}]+)\}")
_SBT_VALUE = re.compile(r'\bval\s+(\w+)\s*(?::\s*String\s*)?=\s*(?:[\w.]+\(\s*)?"([^"]+)"')
_SBT_DEPENDENCY = re.compile(
    r'"([^"\s]+)"\s*(%{1,3})\s*"([^"\s]+)"\s*%\s*(?:[\w.]+\(\s*)?(?:"([^"]+)"|(?:\w+\.)*(\w+))'
)
_SBT_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)
_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*==\s*([^\s;,\\#]+)", re.MULTILINE)
_GO_REQUIREMENT = re.compile(
    r"^\s*(?:require\s+)?([\w.~-]+\.[\w.~-]+/\S+|[\w-]+\.[\w.-]+)\s+(v\d\S*)\s*$", re.MULTILINE
)


@dataclass(frozen=True)
class PinnedPackage:
    """A package in a version. `parts`: how many parts of its number are pinned, if not all.

    `is_scala`: the name in the registry ends with the version of Scala. `repositories` are those that a pom.xml names.
    """

    registry: Registry
    package: str
    version: str
    file: Path
    is_scala: bool = False
    parts: int | None = None
    repositories: tuple[str, ...] = ()


def read_pins(catalogue: Path) -> tuple[PinnedPackage, ...]:
    """What the build files of a catalogue pin, each as new as the versions of its server. Raises UsageError."""
    pins = dict.fromkeys(pin for file in _files(catalogue) for pin in _of_file(file))
    found = [pin for pin in pins if _VERSION.fullmatch(pin.version)]
    for file in sorted(catalogue.glob("*/server.yaml")):
        for folder, versions in _versions(file):
            found = [_as_new_as(pin, folder, versions, file) for pin in found]
    return tuple(dict.fromkeys(found))


def _files(catalogue: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(catalogue):
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCES and not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names))


def _of_file(file: Path) -> Iterable[PinnedPackage]:
    """The pins of a file; none if it is not a build file. Raises UsageError if it cannot be read."""
    kind = "*.sbt" if file.suffix == ".sbt" else file.name
    if kind not in _READERS or (kind == "*.sbt" and file.parent.name == "project"):  # plugins of sbt
        return ()
    try:
        return list(_READERS[kind](file))
    except (OSError, ValueError, SyntaxError, AttributeError, TypeError) as error:  # ET.ParseError is a SyntaxError
        raise UsageError(f"{file} cannot be read: {clip(str(error), 200)}", hint="correct it") from error


def _versions(file: Path) -> Iterator[tuple[Path, list[str]]]:
    """The versions of each server of a sound server.yaml, and the folder of its build."""
    family: Any = parse_document(file.read_text(encoding="utf-8"), str(file)).value
    for server in family.get("servers", {}).values():
        versions = {**family.get("versions", {}), **server.get("versions", {})}
        folder = {**family.get("build", {}), **server.get("build", {})}.get("folder", ".")
        if versions:
            yield (file.parent / folder).resolve(), [str(version) for version in versions.values()]


def _as_new_as(pin: PinnedPackage, folder: Path, versions: list[str], file: Path) -> PinnedPackage:
    """The pin, in the newest of these versions if it is of the package that they are versions of."""
    if pin.version != versions[0] or not pin.file.resolve().is_relative_to(folder):
        return pin
    version = newest(versions) or pin.version
    return pin if version == pin.version else replace(pin, version=version, file=file)


def _of_pom(file: Path) -> Iterator[PinnedPackage]:
    """The pins of a pom and of its parents, which may have another name than pom.xml."""
    poms = list(_with_parents(file))
    for at in range(len(poms)):
        yield from _of_inheriting(poms[at:])


def _of_inheriting(poms: Sequence[tuple[Path, ET.Element]]) -> Iterator[PinnedPackage]:
    """The pins of the first of these poms; the others are its parents."""
    (file, own), *_ = poms
    properties: dict[str, str] = {}
    for _, pom in reversed(poms):
        properties |= {each.tag.rpartition("}")[2]: _text(each) for each in pom.findall("{*}properties/*")}
    repositories = tuple(
        address
        for _, pom in poms
        for each in pom.findall("{*}repositories/{*}repository/{*}url")
        if (address := _text(each))
    )
    dependencies = [*own.findall("{*}dependencyManagement/{*}dependencies/{*}dependency")]
    dependencies += own.findall("{*}dependencies/{*}dependency")
    dependencies += own.findall("{*}parent") if len(poms) == 1 else ()
    for each in dependencies:
        group, artifact, version = (
            _PROPERTY.sub(lambda found: properties.get(found[1], found[0]), _text(each.find(f"{{*}}{name}")))
            for name in ("groupId", "artifactId", "version")
        )
        if not _PROPERTY.search(group + artifact):
            yield PinnedPackage("Maven", f"{group}:{artifact}", version, file, repositories=repositories)


def _with_parents(file: Path) -> Iterator[tuple[Path, ET.Element]]:
    """A pom and its parents, as far as they are files."""
    known = set()
    while file.is_file() and file.resolve() not in known:
        known.add(file.resolve())
        pom = ET.parse(file).getroot()  # noqa: S314 - of whoever runs the builds in it
        yield file, pom
        parent = pom.find("{*}parent")
        if parent is None:
            return
        relative = parent.find("{*}relativePath")
        file = file.parent / ("../pom.xml" if relative is None else _text(relative) or "no file")
        file = Path(os.path.normpath(file / "pom.xml" if file.is_dir() else file))


def _text(element: ET.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""


def _of_sbt(file: Path) -> Iterator[PinnedPackage]:
    """A version may be a literal, or a value of the file or of the sources in `project/`."""
    text = _SBT_COMMENT.sub("", file.read_text(encoding="utf-8"))
    texts = {source: source.read_text(encoding="utf-8") for source in sorted(file.parent.glob("project/*.scala"))}
    values = dict(_SBT_VALUE.findall("\n".join((*texts.values(), text))))
    for path, content in ((file, text), *texts.items()):
        for group, signs, artifact, literal, name in _SBT_DEPENDENCY.findall(content):
            yield PinnedPackage(
                "Maven", f"{group}:{artifact}", literal or values.get(name, ""), path, is_scala=len(signs) > 1
            )


def _of_cargo(file: Path) -> Iterator[PinnedPackage]:
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    holders = (document, document.get("workspace", {}), *document.get("target", {}).values())
    tables = (holder.get(name, {}) for holder in holders for name in ("dependencies", "build-dependencies"))
    for name, written in chain.from_iterable(table.items() for table in tables):
        wanted = {"version": written} if isinstance(written, str) else written
        version = wanted.get("version", "").lstrip("^~= ")
        yield PinnedPackage("crates.io", wanted.get("package", name), version, file, parts=version.count(".") + 1)


def _of_npm(file: Path) -> Iterator[PinnedPackage]:
    document = json.loads(file.read_text(encoding="utf-8"))
    for name, version in {**document.get("overrides", {}), **document.get("dependencies", {})}.items():
        if isinstance(version, str):
            yield PinnedPackage("npm", name, version.lstrip("^~= "), file)


def _of_requirements(file: Path) -> Iterator[PinnedPackage]:
    for name, version in _REQUIREMENT.findall(file.read_text(encoding="utf-8")):
        yield PinnedPackage("PyPI", re.sub(r"[-_.]+", "-", name).lower(), version, file)


def _of_go(file: Path) -> Iterator[PinnedPackage]:
    for module, version in _GO_REQUIREMENT.findall(file.read_text(encoding="utf-8")):
        yield PinnedPackage("Go", module, version, file)


_READERS: Mapping[str, Callable[[Path], Iterable[PinnedPackage]]] = {
    "pom.xml": _of_pom,
    "*.sbt": _of_sbt,
    "Cargo.toml": _of_cargo,
    "package.json": _of_npm,
    "requirements.in": _of_requirements,
    "requirements.txt": _of_requirements,
    "go.mod": _of_go,
}
