"""The tools that builds need: whether they are here, and which version."""

import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from redline.errors import BuildError
from redline.model import Tool
from redline.plugins.launchers.files import replace_text

_VERSION_WITHIN_S = 60.0


class ToolVersions:
    """Asks tools for their versions, and remembers in a file what cannot have changed since."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._asked: dict[str, str] = {}

    def missing(self, needs: tuple[Tool, ...]) -> Tool | None:
        """The first tool that is not on the PATH, if any."""
        return next((tool for tool in needs if shutil.which(tool.command) is None), None)

    def check(self, name: str, needs: tuple[Tool, ...]) -> None:
        """Raises BuildError for a tool that is not on the PATH, with its own hint."""
        tool = self.missing(needs)
        if tool is not None:
            raise BuildError(f"{name} cannot be used here: {tool.command} is not installed", hint=tool.hint)

    def versions(self, name: str, needs: tuple[Tool, ...], folder: Path) -> dict[str, str]:
        """What each tool says of its version, asked in `folder`: there a toolchain file may choose it."""
        return {tool.command: self._version(name, tool, folder) for tool in needs if tool.version}

    def _version(self, name: str, tool: Tool, folder: Path) -> str:
        key = json.dumps([*tool.version, str(folder)])
        if key in self._asked:
            return self._asked[key]
        identity = _identity(tool.version[0])
        remembered = self._remembered()
        known = remembered.get(key)
        if identity is not None and isinstance(known, list) and known[:1] == [identity]:
            self._asked[key] = str(known[1])
            return self._asked[key]
        self._asked[key] = _ask(name, tool, folder)
        if identity is not None:
            with suppress(OSError):
                replace_text(self._memory, json.dumps({**remembered, key: [identity, self._asked[key]]}, indent=1))
        return self._asked[key]

    def _remembered(self) -> dict[str, object]:
        try:
            memory = json.loads(self._memory.read_text())
        except (OSError, ValueError):
            return {}
        return memory if isinstance(memory, dict) else {}


def _identity(command: str) -> str | None:
    """What tells that a command is still the same program, or None when its file does not tell.

    A link to a program of another name (rustup's cargo) gives another version when that program is set otherwise.
    Build tools of the JVM tell the version of the Java that they would run on, so that counts too.
    """
    found = shutil.which(command)
    if found is None:
        return None
    real = Path(found).resolve()
    if real.name != Path(found).name or real.stat().st_nlink > 1:
        return None
    java = shutil.which("java")
    files = [_file_identity(real), *([_file_identity(Path(java).resolve())] if java else [])]
    return " ".join([*files, os.environ.get("JAVA_HOME", "")])


def _file_identity(file: Path) -> str:
    stat = file.stat()
    return f"{file} {stat.st_mtime_ns} {stat.st_size}"


def _ask(name: str, tool: Tool, folder: Path) -> str:
    try:
        done = subprocess.run(
            tool.version,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{name}: `{' '.join(tool.version)}` could not be run: {error}", hint=tool.hint) from error
    text = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        last = text.splitlines()[-1] if text else "nothing"
        raise BuildError(
            f"{name}: `{' '.join(tool.version)}` failed with code {done.returncode} and said: {last}", hint=tool.hint
        )
    return text
