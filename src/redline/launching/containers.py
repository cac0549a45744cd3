"""Servers in containers: make images, start, verify limits, and remove everything afterwards.

The warden runs the client of the container engine, which stays attached to the container: so the output, end and
exit code are handled as those of any server. The janitor, a shell, waits for the lab to end, in any
way, and removes everything with the lab's label.
"""

import atexit
import math
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from redline.driving.engine_process import installed_folder
from redline.errors import BuildError, LaunchError
from redline.files import mend
from redline.launching import failures, images
from redline.launching.builds import StandingBuild
from redline.launching.container_engine import (
    ANSWER_WITHIN_S,
    WORK_WITHIN_S,
    ContainerEngine,
    ContainerEngineError,
    find_container_engine,
    reason_of,
)
from redline.launching.failures import tail
from redline.launching.guard import Exited, Guard, LaunchOrder, NotStarted, Started
from redline.launching.jdks import Jdk
from redline.launching.temporary import temporary_folder
from redline.linux import cgroup, procfs
from redline.model import Container, Variant
from redline.model.catalogue import FILLED_BY_THE_LAB, filled, option_text
from redline.quantities import size

LABEL = "redline.lab"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside of a container, whose port is published on 127.0.0.1 alone
_COULD_NOT_RUN = 125
"""Exit code of `run` for errors of the engine, not of the server."""
_BY_SIGNAL = 128
_OF_THE_CLIENT = re.compile(r"PATH|HOME|TMPDIR|(?:XDG|LD|DBUS|DOCKER|CONTAINERS?|PODMAN|STORAGE|REGISTRY)_\w+")
"""Variables that podman and docker read themselves."""
_PAUSE_S = 0.02
_ENDING_S = 1.0
_START_WITHIN_S = 30.0
# Remove images by name: an image may have other names, which are the user's.
_JANITOR = """\
trap "" INT HUP TERM
read -r said
list() { timeout 60 "$@" 2>/dev/null; }
remove() {
  all=$(list "$@" ps --all --quiet --filter "label=$LABEL=$LAB")
  [ -z "$all" ] || { list "$@" kill $all; list "$@" rm --force --volumes $all; }
  all=$(list "$@" network ls --quiet --filter "label=$LABEL=$LAB")
  [ -z "$all" ] || list "$@" network rm $all
  all=$(list "$@" volume ls --quiet --filter "label=$LABEL=$LAB")
  [ -z "$all" ] || list "$@" volume rm --force $all
  all=$(list "$@" images --format "{{.Repository}}:{{.Tag}}" "redline/$LAB" | grep "redline/$LAB:")
  [ -z "$all" ] || list "$@" rmi --force $all
}
remove "$@"
[ -n "$said" ] || for _ in 1 2 3 4 5 6; do sleep 10; remove "$@"; done
"""
_IN_ORDER = b"closed\n"
"""What the janitor reads when a lab ends in order. A lab that was killed says nothing: then calls of the engine may go
on for a while, and make what was not there yet, so the janitor looks again for a minute. It does not wait for them:
what they leave running, such as podman's aardvark-dns, would hold whatever says that they go on."""


@dataclass(frozen=True)
class Image:
    """An image of the engine. `mounts` are the paths of this machine that its containers get, read-only.

    With a `port` it runs unchanged: with its own command, which listens on that port of its container.
    """

    name: str
    mounts: tuple[Path, ...] = ()
    port: int | None = None


class Containers:
    """A lab's use of a container engine, which begins with the first container."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._numbers = count(1)
        self._images: dict[tuple[str, int], Image] = {}
        self._engine: ContainerEngine | ContainerEngineError | None = None
        self._janitor: subprocess.Popen[bytes] | None = None

    @cached_property
    def lab(self) -> str:
        """The lab's identifier in labels and names, distinct on this machine."""
        return f"{os.getpid()}-{secrets.token_hex(3)}"

    def engine(self) -> ContainerEngine:
        """Return an engine that has run a container here. Raises ContainerEngineError, then never tries again."""
        if isinstance(self._engine, ContainerEngine):
            return self._engine
        try:
            if self._engine is not None:
                raise self._engine
            self._engine = find_container_engine(self._try_out)
        except ContainerEngineError as error:
            self._engine = error
            raise
        return self._engine

    def _try_out(self, engine: ContainerEngine) -> None:
        """Run `true` in a container that is pinned to a core, as servers are. Raises ContainerEngineError."""
        self.close()  # remove what a failed engine left
        self._watch(engine)
        name, files = f"redline-{self.lab}-0", images.needed(Path("/"), (), ("true",), (), None)
        try:
            image = self._import(engine, "check", files)
        except OSError as error:
            raise ContainerEngineError(f"no image can be made: {error}", mend(error)) from error
        core = str(min(os.sched_getaffinity(0)))
        options = ("--name", name, "--label", f"{LABEL}={self.lab}", "--network", "host", "--pull", "never")
        engine.call("run", *options, "--cpuset-cpus", core, *engine.ulimits, image.name, "true")
        engine.call("rm", "--force", name)

    def provide(
        self, variant: Variant, built: StandingBuild, jdk: Jdk | None, progress: Callable[[str], None]
    ) -> Image:
        """Return the image of a container variant, made if there is none. Raises BuildError."""
        assert variant.container is not None
        key = (variant.slug, built.number)
        if key not in self._images:
            try:
                self._images[key] = self._container_server(variant, variant.container, built, jdk, progress)
            except ContainerEngineError as error:
                raise BuildError(f"no container for it: {error}", hint=error.hint) from error
            except OSError as error:
                reason = f"{error.filename or self._scratch}: {error.strerror}"
                message = f"the image of {variant.slug} could not be made: {reason}"
                raise BuildError(message, hint=mend(error)) from error
        return self._images[key]

    def _container_server(
        self,
        variant: Variant,
        wanted: Container,
        built: StandingBuild,
        jdk: Jdk | None,
        progress: Callable[[str], None],
    ) -> Image:
        entry, engine = variant.catalogued, self.engine()
        if wanted.image is not None:
            try:
                engine.call("image", "inspect", wanted.image)
            except ContainerEngineError as error:
                hint = f"get it first: {engine.name} pull {wanted.image}"
                raise ContainerEngineError(f"there is no image {wanted.image} here", hint) from error
            homes = (jdk.home,) if jdk else ()
            here = str(installed_folder())
            ours = (Path(word.replace("{bin}", here)) for word in entry.start.command if word.startswith("{bin}"))
            return Image(wanted.image, tuple(dict.fromkeys((built.folder, *homes, *_outside(homes), *ours))))
        progress("making its image")
        values = dict.fromkeys(FILLED_BY_THE_LAB, "") | {
            **{name: option_text(value) for name, value in variant.options.items()},
            "folder": str(built.folder),
            "bin": str(installed_folder()),
            "java": str(jdk.java) if jdk else "",
        }
        words = [filled(text, values) for text in (*entry.start.command, *entry.start.env.values())]
        tools = [tool.command for tool in entry.start.needs]
        return self._import(
            engine, entry.name, images.needed(built.folder, entry.catalogue_build.outputs, words, tools, jdk)
        )

    def _import(self, engine: ContainerEngine, name: str, paths: tuple[Path, ...]) -> Image:
        """Import an image of these paths from a tar file."""
        image = f"redline/{self.lab}:{name}-{images.digest(paths)}"
        if image not in [known.name for known in self._images.values()]:
            with temporary_folder(self._scratch) as folder:
                images.pack(paths, folder / "image.tar")
                engine.call("import", str(folder / "image.tar"), image, within_s=WORK_WITHIN_S)
        return Image(image)

    def new_name(self) -> str:
        """Return a name for the objects of a start, unique on this machine."""
        return f"redline-{self.lab}-{next(self._numbers)}"

    def guard(
        self, server: str, wanted: Container, image: Image, order: LaunchOrder, start: "BoxedStart"
    ) -> "ContainerGuard":
        """Start the server of an order in a container. Raises LaunchError, and what a Guard raises."""
        try:
            return ContainerGuard(order, Box(self.engine(), self.new_name(), self.lab, server, wanted, image, start))
        except ContainerEngineError as error:
            raise LaunchError(f"{server}: {error}", hint=error.hint) from error

    def _watch(self, engine: ContainerEngine) -> None:
        """Start the janitor. It works once its stdin has a line or ends; only the lab holds it open."""
        self._janitor = subprocess.Popen(
            ("sh", "-c", _JANITOR, "janitor", *engine.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LAB": self.lab, "LABEL": LABEL},
            start_new_session=True,
        )
        atexit.register(self.close)

    def close(self) -> None:
        """Remove everything that this lab has made in the engine, and wait for that. May be called again."""
        janitor, self._janitor = self._janitor, None
        if janitor is not None and janitor.stdin is not None:
            with suppress(BrokenPipeError):
                janitor.stdin.write(_IN_ORDER)
                janitor.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                janitor.wait(WORK_WITHIN_S)


def cores_of(wanted: Container | None, cores: int) -> int:
    """Return how many of the pinned cores a server may use."""
    return cores if wanted is None or wanted.cpus is None else max(1, min(cores, math.ceil(wanted.cpus)))


def _outside(folders: tuple[Path, ...]) -> list[Path]:
    """Return the targets of links that lead out of these folders, as in Debian's JDKs."""
    targets = []
    for folder in folders:
        for link in (path for path in folder.rglob("*") if path.is_symlink() and path.exists()):
            targets += [step for step in images.path_steps(link) if folder not in step.parents and step.is_file()]
    return targets


@dataclass(frozen=True)
class BoxedStart:
    """The container's part of a start: a port, a folder, and variables of the order's environment."""

    port: int
    scratch: Path
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Box:
    """A container: run, looked up, verified and removed."""

    engine: ContainerEngine
    name: str
    lab: str
    server: str
    wanted: Container
    image: Image
    start: BoxedStart

    def open(self) -> None:
        """Make its network. Raises ContainerEngineError."""
        if self.wanted.network == "published":
            self.engine.call("network", "create", "--label", f"{LABEL}={self.lab}", self.name)

    def order(self, order: LaunchOrder) -> LaunchOrder:
        """Return the order for the client that runs a server in this container. Raises ContainerEngineError."""
        as_it_is = self.image.port is not None
        own = (
            () if self.wanted.image or as_it_is else ("PATH",)
        )  # an image of the build has everything where this machine has it
        env = {name: order.env[name] for name in (*own, *self.start.variables) if name in order.env}
        # Everybody on the machine can read command lines: the client takes private values from its environment.
        hidden = {name: text for name, text in env.items() if name in order.private}
        if (reserved := next(filter(_OF_THE_CLIENT.fullmatch, hidden), None)) is not None:
            message = f"{reserved}, which `env_file` or `${{…}}` sets, would change how {self.engine.name} itself runs"
            raise ContainerEngineError(message, f"write its value under `env`, or leave {reserved} out")
        port = self.start.port
        published = ["--network", self.name, "--publish", f"127.0.0.1:{port}:{self.image.port or port}"]
        network = ["--network", "host"] if self.wanted.network == "host" else published
        mounted = (
            *("--workdir", str(order.folder), "--volume", f"{self.start.scratch}:{self.start.scratch}"),
            *("--security-opt", "label=disable"),  # else SELinux denies access to the mounts
        )
        options = [
            *("--name", self.name, "--label", f"{LABEL}={self.lab}", "--pull", "never", "--log-driver", "none"),
            *(() if as_it_is else mounted),
            *network,
            *self._limits(order.cpus),
            *self.engine.ulimits,
            *(word for path in self.image.mounts for word in ("--volume", f"{path}:{path}:ro")),
            *(
                word
                for name, text in sorted(env.items())
                for word in ("--env", name if name in hidden else f"{name}={text}")
            ),
        ]
        program, words = order.command[:1], order.command[1:]
        entry_point = ("--entrypoint", *program) if program else ()
        command = (*self.engine.command, "run", *options, *entry_point, self.image.name, *words)
        return replace(order, command=command, env={**os.environ, **hidden}, cpus=(), cgroup_parent=None)

    def _limits(self, cpus: tuple[int, ...]) -> list[str]:
        pinned = ["--cpuset-cpus", ",".join(map(str, cpus))] if cpus else []
        quota = ["--cpus", f"{self.wanted.cpus:g}"] if self.wanted.cpus else []
        memory = str(self.wanted.memory_bytes)
        bounded = ["--memory", memory, "--memory-swap", memory] if self.wanted.memory_bytes else []
        return [*pinned, *quota, *bounded, "--pids-limit", str(self.wanted.pids or -1)]

    def pid(self) -> int:
        """The first process of the container, as this machine sees it; 0 while there is none yet."""
        try:
            text = self.engine.call("container", "inspect", "--format", "{{.State.Pid}}", self.name)
        except ContainerEngineError as error:
            if error.is_missing:
                return 0
            raise
        return int(text) if text.isdigit() else 0

    def verify(self, pid: int, cpus: tuple[int, ...]) -> None:
        """Verify the server's process, cores and limits. Raises LaunchError."""
        if not is_first_of_its_namespace(pid):
            message = f"{self.server}: process {pid}, which {self.engine.name} names, is not one of its container"
            raise LaunchError(
                message, hint="run the lab where the container engine runs, not in a container of its own"
            )
        for what, asked, actual in self.differences(pid, cpus):
            raise LaunchError(
                f"{self.server}: {what} of its container should be {asked}, and its control group says {actual}",
                hint=f"can {self.engine.name} use the controllers cpu, cpuset, memory and pids? See `redline doctor`",
            )

    def differences(self, pid: int, cpus: tuple[int, ...]) -> list[tuple[str, str, str]]:
        """Return the limits that are not in force: name, wanted value, actual value."""
        limits, wanted = cgroup.read_limits(pid=pid), self.wanted
        try:
            pinned = tuple(sorted(os.sched_getaffinity(pid)))
        except OSError:
            pinned = cpus  # it has ended, which is reported elsewhere
        page = procfs.PAGE_BYTES
        memory = None if wanted.memory_bytes is None else wanted.memory_bytes // page * page
        compared: list[tuple[str, object, object]] = [
            ("the cores", cpus or pinned, pinned),
            ("the limit `memory`", memory, limits.memory_bytes),
            ("the limit `pids`", wanted.pids, limits.tasks),
        ]
        # A quota is kept in microseconds of a period of 100 ms.
        if wanted.cpus is not None and (limits.cores is None or abs(limits.cores - wanted.cpus) > wanted.cpus * 1e-3):
            compared.append(("the limit `cpus`", wanted.cpus, limits.cores))
        return [(what, str(asked), str(actual)) for what, asked, actual in compared if asked not in (None, actual)]

    def close(self, pid: int, grace_ns: int) -> None:
        """Stop and remove it with its network. Raises LaunchError if the engine does not do that."""
        calls = [
            ("kill", self.name),
            ("rm", "--force", "--volumes", self.name),
            *([("network", "rm", self.name)] if self.wanted.network == "published" else []),
        ]
        errors: list[ContainerEngineError] = []
        if pid and catches_sigterm(pid):
            seconds = math.ceil(grace_ns / 1e9)
            with suppress(ContainerEngineError):
                self.engine.call("stop", "-t", str(seconds), self.name, within_s=seconds + ANSWER_WITHIN_S)
        for call in calls:
            try:
                self.engine.call(*call)
            except ContainerEngineError as error:
                if call[0] != "kill" and not error.is_missing:
                    errors.append(error)
        if errors:
            if pid:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            message = f"the container {self.name} of {self.server} could not be removed: {errors[0]}"
            raise LaunchError(message, hint=errors[0].hint)


class ContainerGuard(Guard):
    """A warden whose server is the client of a container engine, and the client's container."""

    def __init__(self, order: LaunchOrder, box: Box) -> None:
        """Start the guard. Raises ContainerEngineError, and what a Guard raises."""
        self._box, self._inner, self._pid, self._closed = box, order, 0, False
        boxed = box.order(order)
        box.open()
        super().__init__(boxed)

    def started(self) -> Started | NotStarted:
        """Wait until the container runs, and verify its limits. Raises LaunchError."""
        client = super().started()
        if isinstance(client, NotStarted):
            return client
        try:
            self._pid = self._container_pid()
        except ContainerEngineError as error:
            raise LaunchError(f"{self._box.server}: {error}", hint=error.hint) from error
        if not self._pid:
            return client  # it ended already, and its log says why
        try:
            self._box.verify(self._pid, self._inner.cpus)
        except LaunchError:
            if self.poll(_ENDING_S) is None:
                raise
            return client  # nothing can be read of an ending process
        return Started(self._pid, client.at_ns, cgroup.own_group_of(self._pid) is not None)

    def _container_pid(self) -> int:
        deadline = time.monotonic() + _START_WITHIN_S
        while self.poll(_PAUSE_S) is None:
            if pid := self._box.pid():
                return pid
            if time.monotonic() > deadline:
                message = f"its container was not started within {_START_WITHIN_S:.3g} s"
                raise ContainerEngineError(message, f"see {self._order.log}")
        exited = self.exited
        if exited is not None and exited.code == _COULD_NOT_RUN:
            said = tail(self._order.log)
            if not failures.says_port_is_taken(said):
                message = f"{self._box.engine.name} could not start its container: {reason_of(said)}"
                as_it_is = self._box.image.port is not None
                hint = failures.OF_IMAGE.by_hand if as_it_is else f"its whole output is in {self._order.log}"
                raise ContainerEngineError(message, hint)
        return 0

    def poll(self, wait_s: float = 0.0) -> Exited | None:
        """Return how the server ended: exit codes above 128 mean signals."""
        known, exited = self.exited, super().poll(wait_s)
        if known is None and exited is not None and (exited.code or 0) > _BY_SIGNAL:
            number = (exited.code or 0) - _BY_SIGNAL
            limit = self._box.wanted.memory_bytes
            killed = number == signal.SIGKILL and limit is not None
            because = f"in a container that may use {size(limit)} of memory" if killed and limit else ""
            self.exited = replace(exited, code=None, signal=number, because=because)
        return self.exited

    def stop(self) -> None:
        """Remove the container, and then everything that was started for it. May be called again."""
        closed, self._closed = self._closed, True
        try:
            if not closed:
                self._box.close(self._pid, self._inner.grace_ns)
        finally:
            super().stop()


def catches_sigterm(pid: int) -> bool:
    """Whether a process handles SIGTERM. Otherwise SIGTERM does not end the first process of a container."""
    match = re.search(rb"^SigCgt:\s+([0-9a-f]+)", procfs.read_bytes(f"/proc/{pid}/status"), re.MULTILINE)
    return match is not None and bool(int(match[1], 16) >> (signal.SIGTERM - 1) & 1)


def is_first_of_its_namespace(pid: int) -> bool:
    """Whether a process is the first of a PID namespace below the lab's."""
    match = re.search(rb"^NSpid:\s+(.+)", procfs.read_bytes(f"/proc/{pid}/status"), re.MULTILINE)
    ids = match[1].split() if match else []
    return len(ids) > 1 and ids[-1] == b"1"
