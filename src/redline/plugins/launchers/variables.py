"""The environment of a server: that of the lab, with the variables of its entry; and which of them are secret.

What comes from a file, or from the lab's own environment by its name, is secret: it is read at every start, kept in
memory alone, and hidden in what the server writes.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from redline.errors import Location, UsageError
from redline.files import open_regular
from redline.model import ServerEntry, Variant
from redline.model.catalogue import passed_names, with_passed
from redline.plugins.launchers.warden import Redactor

_MOST_BYTES = 256 * 1024
_SHORTEST_HIDDEN = 6
"""Shorter values, such as `1`, `true` or `8080`, are in too much that a server writes, and no secrets."""
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)")
"""What a compose file takes from an environment."""
_NOT_SET = "set it, as in `{name}=… redline …`, or take it out"


@dataclass(frozen=True, repr=False)
class Variables:
    """The variables of a server's environment, the names of its own, and the texts that are hidden wherever kept.

    `private` are the names of those of its own whose values are not written in its entry.
    """

    env: dict[str, str]
    own: tuple[str, ...]
    private: tuple[str, ...]
    secrets: tuple[str, ...]


def variables_of(entry: ServerEntry, values: Mapping[str, str]) -> Variables:
    """The environment of a start in which names in braces have these values. Raises UsageError, without any value."""
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


def secrets_of_compose(file: Path) -> tuple[str, ...]:
    """What is hidden of what the services of a compose file write, by the rule that variables of other servers have.

    That is what comes from `.env` beside it, from files that it names, and from the lab's environment. What cannot be
    read is left to the program that runs the file.
    """
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


def hidden_in(text: str, secrets: Sequence[str]) -> str:
    """The text without secrets."""
    return Redactor(secrets).passed(text.encode(), last=True).decode()


def _mappings(written: Any, key: str) -> list[dict[str, Any]]:
    """The mappings below a key of a compose file, without what has another form."""
    below = written.get(key) if isinstance(written, dict) else None
    return [value for value in below.values() if isinstance(value, dict)] if isinstance(below, dict) else []


def _env_files(written: Any) -> list[str]:
    """The files that a service has under `env_file`: a path, or a list of paths and of mappings with a path."""
    several = written if isinstance(written, list) else [written]
    paths = (item.get("path") if isinstance(item, dict) else item for item in several)
    return [str(path) for path in paths if path]


def _values(text: str) -> list[str]:
    """The values in the text of a file of variables, and lines that are none, which an error may quote."""
    bindings = parse_stream(StringIO(text))
    return [value for binding in bindings if (value := binding.original.string if binding.error else binding.value)]


def _text(file: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        with open_regular(file) as opened:
            return opened.read(_MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError, UsageError):
        return ""


def _references(entry: ServerEntry) -> list[tuple[str, str]]:
    """Variables of a server, and what they take from the lab's environment."""
    return [(variable, name) for variable, text in entry.start.env.items() for name in passed_names(text)]


def _passed(server: str, where: str, name: str) -> str:
    if (value := os.environ.get(name)) is None:
        message = f"{server}: {where}: the variable {name} is not set in the environment of redline"
        raise UsageError(message, hint=_NOT_SET.format(name=name))
    return value


def _read(server: str, file: Path) -> dict[str, str]:
    """The variables of a file, as `docker --env-file` and most frameworks read it, quotes and comments included.

    A name alone is that variable of the lab's environment. No message quotes the file, which holds secrets.
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
    for binding in parse_stream(StringIO(text)):
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
    """What is hidden of secret values: every line of them that is not too short, the longest first."""
    lines = {line.strip() for value in values for line in (value, *value.splitlines())}
    return tuple(sorted((line for line in lines if len(line) >= _SHORTEST_HIDDEN), key=lambda line: (-len(line), line)))
