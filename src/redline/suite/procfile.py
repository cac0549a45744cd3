"""Read the server's command from a Procfile. Pure."""

import re
import shlex
from pathlib import PurePath

from redline.errors import Location, UsageError, WrongValueError
from redline.lazily import dataclass
from redline.schema.shell import for_a_shell, read_command

_ENTRY = re.compile(r"([A-Za-z0-9_-]+):\s*(\S.*)")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT(?::?-[^}]*)?\})")
_COMMENT = re.compile(r"\s#")
_SERVER = "web"


@dataclass(frozen=True)
class ProcfileEntry:
    """A process: its name, its command with {port}, and its line number."""

    name: str
    command: str
    line: int


def is_procfile(name: str) -> bool:
    """Whether a file has a Procfile's name: `Procfile`, or `Procfile.dev`."""
    return PurePath(name).name.partition(".")[0] == "Procfile"


def read_procfile(text: str, file: str) -> tuple[ProcfileEntry, list[str]]:
    """The server, and the names of the other processes. Raises UsageError with the line.

    The server is `web`, or else the first process with `$PORT`. A command without `$PORT` gets PORT in its environment,
    and a command with shell syntax gets a shell, as each has where Procfiles come from.
    """
    entries = list[ProcfileEntry]()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ENTRY.fullmatch(line.strip())
        if match is None:
            hint = "write a name and a command: `web: ./server --port $PORT`"
            raise UsageError("this is not an entry of a Procfile", hint=hint, place=Location(file, number))
        entries.append(ProcfileEntry(match[1], match[2], number))
    servers = [entry for entry in entries if entry.name == _SERVER] or [
        entry for entry in entries if _PORT.search(entry.command)
    ]
    if not servers:
        hint = "name the server `web`, or write $PORT where its command takes the port"
        raise UsageError("this Procfile has no server", hint=hint, place=Location(file))
    server = servers[0]
    command = _PORT.sub("{port}", server.command)
    has_port = command != server.command
    try:
        if _COMMENT.search(command) or for_a_shell(command):
            command = f"sh -c {shlex.quote(command)}"
        command = command if has_port else f"env PORT={{port}} {command}"
        read_command(command)
    except WrongValueError as error:
        raise UsageError(error.message, hint=error.hint, place=Location(file, server.line, field=server.name)) from None
    except ValueError as error:
        hint = "quote it as a shell would"
        place = Location(file, server.line, field=server.name)
        raise UsageError(f"this is not a command: {error}", hint=hint, place=place) from None
    return ProcfileEntry(server.name, command, server.line), [
        entry.name for entry in entries if entry.line != server.line
    ]
