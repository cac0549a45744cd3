"""Container engines: the client of podman or docker, whichever is here. All its calls have a time limit."""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redline.launching import error_lines
from redline.linux.cgroup import read_limits

CHOICE = "REDLINE_CONTAINER_ENGINE"
"""The variable that names the client to use, on the PATH or by its path."""
CLIENTS = ("podman", "docker")
INSTALL = f"install podman or docker, or name its client in {CHOICE}"
ANSWER_WITHIN_S, WORK_WITHIN_S = 20.0, 120.0
"""Time limits of calls that take well under a second, and of calls that move an image or wait for an end."""
_LATE_WITHIN_S = 4.0
_LONGEST_REASON = 500
_MISSING = re.compile("no such|not found|not known|unable to find", re.IGNORECASE)


class ContainerEngineError(Exception):
    """A call failed, or took too long (`late`). The text is a reason in a line; `hint` says what to do.

    `said` is the reason in the engine's words; empty if it gave none.
    """

    def __init__(self, message: str, hint: str, *, late: bool = False, said: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.late = late
        self.said = said

    @property
    def is_missing(self) -> bool:
        """Whether the container, network or image does not exist."""
        return _MISSING.search(self.said) is not None


@dataclass
class ContainerEngine:
    """A working client. `client` is its path; `late` says that its last call took too long."""

    client: str
    late: bool = False

    @cached_property
    def name(self) -> str:
        """`podman` or `docker`, from the client's own output: a `docker` may be podman."""
        said = self.ask("--version")
        return "podman" if "podman" in said.lower() else "docker"

    @cached_property
    def version(self) -> str:
        """`podman 4.3.1`; for docker the version of the service, since the client does not run containers itself."""
        form = "{{.Client.Version}}" if self.name == "podman" else "{{.Server.Version}}"
        return f"{self.name} {self.ask('version', '--format', form)}"

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The client with the options that it needs on this machine."""
        if self.name != "podman":
            return (self.client,)
        # It needs systemd unless told otherwise, and its `crun` refuses mixed control groups of versions 1 and 2.
        no_systemd = not has_systemd()
        prefers_runc = read_limits().layout == "hybrid" and shutil.which("runc") is not None
        manager = ("--cgroup-manager", "cgroupfs") if no_systemd else ()
        return (self.client, *manager, *(("--runtime", "runc") if prefers_runc else ()))

    @cached_property
    def ulimits(self) -> tuple[str, ...]:
        """Options of `run`: as many open files and processes as a server without a container may have."""
        # podman's own defaults are more than a process without CAP_SYS_RESOURCE may set.
        files, processes = (resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        limits = [("nofile", files)] if files != resource.RLIM_INFINITY else []
        if processes != resource.RLIM_INFINITY:
            limits.append(("nproc", min(processes, int(Path("/proc/sys/kernel/pid_max").read_text()))))
        return tuple(word for name, limit in limits for word in ("--ulimit", f"{name}={limit}:{limit}"))

    def call(self, *words: str, within_s: float | None = None) -> str:
        """Return the stripped output of a command; a late engine gets less time. Raises ContainerEngineError."""
        limit_s = within_s or ANSWER_WITHIN_S
        try:
            said = output((*self.command, *words), words[0], min(limit_s, _LATE_WITHIN_S) if self.late else limit_s)
        except ContainerEngineError as error:
            self.late = error.late
            raise
        self.late = False
        return said

    def ask(self, *words: str) -> str:
        """Return the stripped output of a command without the options of this machine."""
        return output((self.client, *words), words[0], ANSWER_WITHIN_S)


def has_systemd() -> bool:
    """Whether systemd runs here: podman lets it make control groups, and time health checks."""
    return Path("/run/systemd/system").is_dir()


def find_container_engine(try_out: Callable[[ContainerEngine], None]) -> ContainerEngine:
    """Return the engine that the environment names, or the first that passes `try_out`.

    Raises ContainerEngineError, with all reasons, if there is none.
    """
    chosen = os.environ.get(CHOICE)
    if chosen and shutil.which(chosen) is None:
        hint = f"let {CHOICE} name the client of podman or docker, on the PATH or by its path"
        raise ContainerEngineError(f"{CHOICE} names {chosen}, which is no command", hint)
    clients = [path for client in ((chosen,) if chosen else CLIENTS) if (path := shutil.which(client))]
    reasons: list[ContainerEngineError] = []
    for client in clients:
        engine = ContainerEngine(client)
        try:
            _ = engine.version
            try_out(engine)
        except ContainerEngineError as error:
            reasons.append(error)
        else:
            return engine
    if not reasons:
        raise ContainerEngineError("there is no container engine: neither podman nor docker is installed", INSTALL)
    raise ContainerEngineError("; ".join(map(str, reasons)), reasons[0].hint)


def output(
    command: tuple[str, ...],
    verb: str,
    within_s: float,
    *,
    name: str = "",
    by_hand: str = "",
) -> str:
    """Return the stripped output of a command, which has its own session: a Ctrl-C reaches only the lab.

    A timeout ends all of it. In messages `name` is the program's name, and `by_hand` what a user can try, if the
    command itself is no help. Raises ContainerEngineError.
    """
    called = f"`{name or Path(command[0]).name} {verb}`"
    hint = f"try it by hand: {by_hand or ' '.join(command[:12])}"
    # Files, not pipes: processes that an engine leaves running may hold its outputs.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            raise ContainerEngineError(f"{called} cannot be run: {error.strerror}", INSTALL) from error
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            message = f"{called} did not end within {within_s:.3g} s"
            raise ContainerEngineError(message, f"does its service run, and is it well? {hint}", late=True) from None
        finally:
            with suppress(ProcessLookupError):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in (out, err):
            file.seek(0)
        text, said = (file.read().decode(errors="replace").strip() for file in (out, err))
    if code != 0:
        reason = reason_of(said)
        raise ContainerEngineError(f"{called} failed: {reason or f'code {code}'}", hint, said=reason)
    return text


def reason_of(said: str) -> str:
    """Return an engine's reason on a line, without words that all of its messages have."""
    return error_lines.reason(said)[:_LONGEST_REASON]
