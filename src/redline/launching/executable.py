"""Say why the kernel does not execute a program, from its error and from the files."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from redline.linux.mounts import noexec_mount

_HEAD_BYTES = 4096
_LOADER = re.compile(rb"/[\w./+-]*/ld[\w.+-]*\.so[\w.]*")
REASONS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC})
"""Errors whose reason is in the file or its folders."""
ELF, _MACHINE = b"\x7fELF", slice(18, 20)


class Refusal(NamedTuple):
    """Why a program is not executed, and what to do; no advice if the reason implies it."""

    reason: str
    advice: str = ""


def why_missing(command: str) -> str:
    """Say why a command is not on the PATH: `cargo is not installed`, or what forbids executing it."""
    if shutil.which(command, mode=os.F_OK) is None:
        return f"{command} is not installed"
    return why_not_executed(command, Path("/"), os.environ, errno.EACCES).reason


def why_not_executed(program: str, folder: Path, env: Mapping[str, str], error: int) -> Refusal:
    """Return the reason for an errno; `program` is the first word of the command, to be started in `folder`."""
    if error not in REASONS:
        return Refusal(f"{program} cannot be executed: {os.strerror(error) if error else 'nobody says why'}")
    if not folder.is_dir():
        return Refusal(f"there is no folder {folder} to start it in")
    if "/" in program:
        file = folder / program
    else:
        on_path = shutil.which(program, mode=os.F_OK, path=env.get("PATH"))
        if on_path is None:
            advice = f"write ./{program}" if (folder / program).is_file() else f"install {program}, or write its path"
            return Refusal(f"there is no {program} on the PATH", advice)
        file = Path(on_path)
    match error:
        case errno.ENOENT | errno.ENOTDIR:
            return _not_there(file)
        case errno.EACCES:
            return _not_permitted(file)
    return _no_program(file)


def _not_there(file: Path) -> Refusal:
    if file.is_symlink() and not file.exists():
        return Refusal(f"{file} is a link to {file.readlink()}, which does not exist")
    if not file.exists():
        return Refusal(f"there is no {file}")
    head = head_of(file)
    if words := first_line(head):
        return Refusal(f"the first line of {file} names {words[0]}, which does not exist")
    if loader := head.startswith(ELF) and _LOADER.search(head):
        name = loader[0].decode()
        return Refusal(f"{file} is linked for {name}, which does not exist", "build it on a system like this one")
    return Refusal(f"{file} cannot be executed: {os.strerror(errno.ENOENT)}")


def _not_permitted(file: Path) -> Refusal:
    try:
        mode = file.stat().st_mode
    except OSError as refused:
        return Refusal(f"{file} cannot be reached: {refused.strerror}")
    if stat.S_ISDIR(mode):
        return Refusal(f"{file} is a folder")
    if forbidden := noexec_mount(file):
        return Refusal(f"{file} may not be executed: {forbidden}", "put it on another file system")
    if not os.access(file, os.X_OK):
        return Refusal(f"{file} is not executable", f"make it executable: chmod +x {file}")
    words = first_line(head_of(file))
    if words and not os.access(words[0], os.X_OK):
        return Refusal(f"the first line of {file} names {words[0]}, which may not be executed")
    return Refusal(f"{file} cannot be executed: {os.strerror(errno.EACCES)}")


def _no_program(file: Path) -> Refusal:
    head = head_of(file)
    if not head:
        return Refusal(f"{file} is empty, or cannot be read")
    if head.startswith(ELF):
        same = head[_MACHINE] == head_of(Path("/proc/self/exe"))[_MACHINE]
        what = "a damaged program" if same else f"a program for another processor than {os.uname().machine}"
        return Refusal(f"{file} is {what}", "build it on this machine")
    return Refusal(
        f"{file} is no program, and has no first line such as `#!/bin/sh`", "write the line, or `sh` before it"
    )


def first_line(head: bytes) -> list[str]:
    """Return the words of a script's first line, `/usr/bin/env bash`; empty for other files."""
    line = head[2:].partition(b"\n")[0] if head.startswith(b"#!") else b""
    return line.decode(errors="replace").split()


def head_of(file: Path) -> bytes:
    """Return the first 4 KiB of a file; empty if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(_HEAD_BYTES)
    except OSError:
        return b""
