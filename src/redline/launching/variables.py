"""The environment of a server: the lab's, with the variables of its entry; and which of them are secret.

Values from a file, or from the lab's own environment by name, are secret: they are read at every start, kept only in
memory, and hidden in the server's output.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redline.driving.secrets import offer
from redline.errors import Location, UsageError
from redline.files import open_regular
from redline.launching.warden import Redactor
from redline.lazily import dataclass
from redline.model import ServerEntry, Variant
from redline.model.catalogue import passed_names, with_passed

if TYPE_CHECKING:
    from dotenv.parser import Binding

_MOST_BYTES = 256 * 1024
_SHORTEST_HIDDEN = 6
"""The shortest secret: shorter values, such as `1`, `true` or `8080`, occur too often in a server's output."""
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)")
"""References of a compose file to an environment."""
_NOT_SET = "set it, as in `{name}=… redline …`, or take it out"


@dataclass(frozen=True, repr=False)
class Variables:
    """The variables of a server's environment, the names of its own, and the texts that are hidden wherever kept.

    `private` are the names of its own variables whose values are not written in its entry.
    """

    env: dict[str, str]
    own: tuple[str, ...]
    private: tuple[str, ...]
    secrets: tuple[str, ...]


def variables_of(entry: ServerEntry, values: Mapping[str, str]) -> Variables:
    """Return a start's environment, with these values for names in braces. Raises UsageError that quotes no value."""
    own, file = entry.start.env, {}
    if entry.start.env_file is not None:
        file = _read(entry.name, Path(entry.start.env_file))
    passed = {name: _passed(entry.name, f"`env`, {variable}", name) for variable, name in _references(entry)}
    env = {**os.environ, **file, **{name: with_passed(text, values, passed) for name, text in own.items()}}
    private = tuple(name for name in file | own if name not in own or passed_names(own[name]))
    return Variables(env, (*(file | own),), private, _hidden((*file.values(), *passed.values())))


def check_variables(variants: Iterable[Variant]) -> None:
    """Raise UsageError for the first server with a file that cannot be read, or a variable that is not set."""
    for variant in variants:
        if isinstance(variant.entry, ServerEntry):
            entry = variant.entry
            if entry.start.env_file is not None:
                _read(entry.name, Path(entry.start.env_file))
            for variable, name in _references(entry):
                _passed(entry.name, f"`env`, {variable}", name)


def offer_variables(variants: Iterable[Variant], names: Iterable[str]) -> None:
    """Let requests take these variables from the files of servers; those of the environment come before them.

    Raises UsageError for a file that cannot be read, and for a variable that two files set differently.
    """
    wanted = {name for name in names if name not in os.environ}
    offered: dict[str, tuple[str, str]] = {}
    for variant in variants if wanted else ():
        entry = variant.entry
        if not isinstance(entry, ServerEntry) or entry.start.env_file is None:
            continue
        variables = _read(entry.name, Path(entry.start.env_file))
        for name in wanted & variables.keys():
            value, file = offered.setdefault(name, (variables[name], entry.start.env_file))
            if value != variables[name]:
                message = f"a request names ${{{name}}}, which {file} and {entry.start.env_file} set differently"
                raise UsageError(message, hint=f"set it in the environment, as in `{name}=… redline …`")
    offer({name: value for name, (value, _) in offered.items()})


def secrets_of_compose(file: Path) -> tuple[str, ...]:
    """Return the texts to hide in the output of a compose file's services, by the same rule as for other servers.

    They come from `.env` beside it, from files that it names, and from the lab's environment. Unreadable files
    are left to the program that runs the file.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415 - this takes long
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    text = _text(file)
    try:
        written = YAML(pure=True).load(text)  # not the safe form, which refuses the tags of compose files
    except YAMLError:
        written = None
    services, secrets = (_mappings(written, key) for key in ("services", "secrets"))
    files = [Path(".env"), *(Path(name) for service in services for name in _env_files(service.get("env_file")))]
    variables = [value for name in files for value in _values(_text(file.parent / name))]
    kept = [_text(file.parent / str(secret["file"])) for secret in secrets if secret.get("file")]
    names = {*_REFERENCE.findall(text), *(str(secret.get("environment")) for secret in secrets)}
    for service in services:
        own = service.get("environment")
        if isinstance(own, dict):
            names |= {str(name) for name, value in own.items() if value is None}
        elif isinstance(own, list):
            names |= {str(item) for item in own}
    passed = [value for name in names if (value := os.environ.get(name))]
    return _hidden((*variables, *kept, *passed))


def variables_of_compose(file: Path) -> dict[str, str]:
    """The variables that a compose file may name: those of `.env` beside it, and before them the environment's."""
    bindings = _bindings(_text(file.with_name(".env")))
    beside = {binding.key: binding.value for binding in bindings if binding.key and binding.value is not None}
    return {**beside, **os.environ}


def hidden_in(text: str, secrets: Sequence[str]) -> str:
    """Hide secrets in a text."""
    hidden = Redactor(secrets).passed(text.encode(errors="surrogateescape"), last=True)
    return hidden.decode(errors="surrogateescape")


def _mappings(written: Any, key: str) -> list[dict[str, Any]]:
    """Return the mappings below a key of a compose file, without values of another form."""
    below = written.get(key) if isinstance(written, dict) else None
    return [value for value in below.values() if isinstance(value, dict)] if isinstance(below, dict) else []


def _env_files(written: Any) -> list[str]:
    """Return a service's files under `env_file`: a path, or a list of paths and of mappings with a path."""
    several = written if isinstance(written, list) else [written]
    paths = (item.get("path") if isinstance(item, dict) else item for item in several)
    return [str(path) for path in paths if path]


def _values(text: str) -> list[str]:
    """Return the values in a file of variables, and invalid lines, which an error may quote."""
    bindings = _bindings(text)
    return [value for binding in bindings if (value := binding.original.string if binding.error else binding.value)]


def _bindings(text: str) -> "Iterable[Binding]":
    from dotenv.parser import parse_stream  # noqa: PLC0415 - few servers have files of variables

    return parse_stream(StringIO(text))


def _text(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        with open_regular(file) as opened:
            return opened.read(_MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError, UsageError):
        return ""


def _references(entry: ServerEntry) -> list[tuple[str, str]]:
    """Return the variables of a server that come from the lab's environment, with their names there."""
    return [(variable, name) for variable, text in entry.start.env.items() for name in passed_names(text)]


def _passed(server: str, where: str, name: str) -> str:
    if (value := os.environ.get(name)) is None:
        message = f"{server}: {where}: the variable {name} is not set in the environment of redline"
        raise UsageError(message, hint=_NOT_SET.format(name=name))
    return value


def _read(server: str, file: Path) -> dict[str, str]:
    """Return the variables of a file, read like `docker --env-file` and most frameworks, quotes and comments included.

    A name alone takes that variable of the lab's environment. No message quotes the file, which holds secrets.
    """
    try:
        with open_regular(file) as opened:
            content = opened.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "write the path relative to the folder in which the commands of the server run"
        raise UsageError(f"{server}: `env_file`: there is no file {file}", hint=hint) from None
    except UnicodeDecodeError:
        raise UsageError(f"{server}: `env_file`: {file} is not UTF-8 text", hint="save it as UTF-8") from None
    except OSError as error:
        message = f"{server}: `env_file`: {file} cannot be read: {error.strerror}"
        raise UsageError(message, hint="check the path and who may read it") from None
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{server}: `env_file`: {file} is longer than 256 KiB", hint="name a file of variables")
    variables: dict[str, str] = {}
    for binding in _bindings(text):
        written = binding.original.string
        blank = written[: len(written) - len(written.lstrip())].count("\n")
        place = Location(str(file), binding.original.line + blank)
        name = binding.key
        if binding.error or (name is not None and (not name or "\0" in f"{name}{binding.value}" or "=" in name)):
            raise UsageError("this is no variable", hint="write NAME=VALUE, with quotes around spaces", place=place)
        if name is not None:
            variables[name] = _passed(server, str(place), name) if binding.value is None else binding.value
    return variables


def _hidden(values: Iterable[str]) -> tuple[str, ...]:
    """Return the texts to hide for secret values: every line that is not too short, the longest first."""
    lines = {line.strip() for value in values for line in (value, *value.splitlines())}
    return tuple(sorted((line for line in lines if len(line) >= _SHORTEST_HIDDEN), key=lambda line: (-len(line), line)))
