"""Profile JVMs with async-profiler: its library is loaded into the running JVM before the load begins.

Its release is fetched once, by Maven, from wherever Maven is set up to fetch from; its content is pinned.
"""

import hashlib
import platform
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redline.extras.profiling.attach import ask_as_jcmd, load_agent
from redline.extras.profiling.sampler import ProfilerError, Sampled
from redline.extras.profiling.texts import in_slices, native_memory, unreadable
from redline.files import write_atomically
from redline.launching import error_lines
from redline.launching.commands import started
from redline.launching.temporary import temporary_folder
from redline.linux import procfs
from redline.model import NativeMemory, ProfileFile, ProfileKind, ProfileUnit, Slice

VERSION, CONVERTER_VERSION = "4.6", "4.5"
_SHA256 = {
    f"async-profiler-{VERSION}.jar": "a5d3d9f4582c2033fa9db518046e73ef97219801f3e7542b82e3e09261ebe493",
    f"jfr-converter-{CONVERTER_VERSION}.jar": "d8a5452b26adb11a2a0abf0c53799a6fd60dbccb0647efa5a734e3c46ced3df4",
}
_LIBRARY = "libasyncProfiler.so"
_FOLDERS = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
_FETCH_WITHIN_S = 300.0
_CONVERT_WITHIN_S = 120.0
_HINT = "install Maven, and try again with a network: it fetches tools.profiler:async-profiler once"

# Without it a stack has only the places where a compiled method can be stopped, so inlined code is attributed
# to its callers. The JVM must know this before it compiles.
_OPTIONS = "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
# A JVM counts its memory outside of the heap only if told to. That costs memory and time, so no other trial has it.
_COUNTS_NATIVE = "-XX:NativeMemoryTracking=summary"


@dataclass(frozen=True)
class _Kind:
    """Arguments of a profile's kind for the library and its converter."""

    event: str
    options: str
    interval: int
    unit: ProfileUnit = "samples"


_KINDS: dict[ProfileKind, _Kind] = {
    "cpu": _Kind("cpu", "event=cpu,interval=1ms", 1_000_000),
    # In batches a sample of an idle thread would stand for up to ten seconds, all at one moment.
    "wall": _Kind("wall", "event=wall,interval=10ms,nobatch", 10_000_000),
    "alloc": _Kind("alloc", "event=alloc,alloc=512k", 512 << 10, "bytes"),
    "lock": _Kind("lock", "event=lock,lock=10us", 10_000, "ns"),
}


@dataclass(frozen=True)
class Artefacts:
    """The library of async-profiler, and the jar of its converter."""

    library: Path
    converter: Path


def provide(cache: Path, progress: Callable[[str], None]) -> Artefacts:
    """Return the artefacts in the cache, fetched if they are missing. Raises ProfilerError."""
    folder = cache.absolute() / "profilers"
    artefacts = Artefacts(
        folder / f"async-profiler-{VERSION}" / _LIBRARY, folder / f"jfr-converter-{CONVERTER_VERSION}.jar"
    )
    if artefacts.library.is_file() and artefacts.converter.is_file():
        return artefacts
    of_machine = _FOLDERS.get(platform.machine())
    if of_machine is None:
        raise ProfilerError(f"async-profiler has no library for {platform.machine()}")
    try:
        with temporary_folder(folder) as parts:
            for jar in _SHA256:
                progress(f"fetching {jar}")
                _fetch(jar, parts)
            artefacts.library.parent.mkdir(exist_ok=True)
            with zipfile.ZipFile(parts / f"async-profiler-{VERSION}.jar") as jar_file:
                write_atomically(artefacts.library, jar_file.read(f"{of_machine}/{_LIBRARY}"))
            write_atomically(artefacts.converter, (parts / artefacts.converter.name).read_bytes())
    except OSError as error:
        raise ProfilerError(f"async-profiler could not be put into {folder}: {error.strerror or error}") from error
    return artefacts


def _fetch(jar: str, folder: Path) -> None:
    name, _, version = jar.removesuffix(".jar").rpartition("-")
    quiet = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress"]
    copy = ["dependency:copy", f"-Dartifact=tools.profiler:{name}:{version}", f"-DoutputDirectory={folder}"]
    code, said = _run([*quiet, *copy], _FETCH_WITHIN_S, folder)
    if code:
        raise ProfilerError(f"Maven could not fetch {jar}: {error_lines.reason(said) or f'status {code}'}")
    sha256 = hashlib.sha256((folder / jar).read_bytes()).hexdigest()
    if sha256 != _SHA256[jar]:
        raise ProfilerError(f"{jar} has the SHA-256 {sha256}, which is not that of its release")


def _run(command: Sequence[str], within_s: float, folder: Path | None = None) -> tuple[int, str]:
    """Run a command: exit code and output. Raises ProfilerError if it cannot be run, or takes too long."""
    try:
        with started(command, folder) as process:
            said = process.communicate(timeout=within_s)[0]
            return process.returncode, said.decode(errors="replace")
    except FileNotFoundError:
        raise ProfilerError(f"there is no {Path(command[0]).name}; {_HINT}") from None
    except subprocess.TimeoutExpired:
        raise ProfilerError(f"{Path(command[0]).name} did not end within {within_s:g} s") from None


class AsyncProfiler:
    """Samples a JVM."""

    name = f"async-profiler {VERSION}"

    def __init__(self, kind: ProfileKind, cache: Path) -> None:
        options = f"{_OPTIONS} {_COUNTS_NATIVE}" if kind == "alloc" else _OPTIONS
        self.env = {"JAVA_TOOL_OPTIONS": options}
        self._flag, self._cache = f"--{kind}", cache
        self._kind = _KINDS[kind]
        self.event, self.interval, self.unit = self._kind.event, self._kind.interval, self._kind.unit
        self._artefacts, self._jvm, self._java = Artefacts(Path(), Path()), 0, Path()
        self._part, self._jfr = Path(), Path()
        self._native: tuple[NativeMemory, ...] = ()

    def prepare(self, pid: int, folder: Path) -> None:
        """Load the library into the JVM, which is the process or a descendant, and let it read all symbols.

        That takes half a second of an idle JVM's time, and seconds of a busy JVM's. It samples meanwhile, into no file.
        """
        del folder
        self._artefacts = provide(self._cache, lambda _line: None)
        self._jvm, self._java = _jvm_of(pid)
        for command in (f"start,{self._kind.options}", "stop"):
            load_agent(self._jvm, self._artefacts.library, command)

    def start(self, pid: int, folder: Path) -> None:
        """Start sampling the JVM."""
        del pid
        self._jfr = folder.absolute() / "profile.jfr"
        self._part = self._jfr.with_suffix(".jfr.part")
        if "," in str(self._part) or "%" in str(self._part):
            raise ProfilerError(f"async-profiler cannot write to a folder with a comma or % in its name: {folder}")
        load_agent(self._jvm, self._artefacts.library, f"start,{self._kind.options},jfr,file={self._part}")

    def stop(self) -> None:
        """End the profile, if there is one, and rename its file."""
        if not self._jfr.name:
            return
        try:
            load_agent(self._jvm, self._artefacts.library, "stop")
        finally:
            if self._part.exists():
                self._part.rename(self._jfr)
        if _COUNTS_NATIVE in self.env["JAVA_TOOL_OPTIONS"]:
            with suppress(ProfilerError, OSError):  # the profile is sound without it
                self._native = native_memory(ask_as_jcmd(self._jvm, "VM.native_memory summary scale=KB"))

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        """Convert the recording to stacks by thread and slice, a flame graph and a heat map."""
        total = ["--total"] if self.unit != "samples" else []
        parts = [(during, self._collapsed(folder, during, *total)) for during in slices or (None,)]
        stacks = in_slices(parts)
        whole = Slice(slices[0].start, slices[-1].end) if slices else None
        counted = in_slices([(None, self._collapsed(folder, whole))]) if total else stacks
        files = [ProfileFile(name="profile.jfr", form="jfr")]
        for name, output in (("flamegraph.html", "html"), ("heatmap.html", "heatmap")):
            title = ["--title", f"{self._kind.event}, {self.name}"] if output == "html" else []
            self._convert(folder / name, "-o", output, *title, *total, *_within(whole))
            files.append(ProfileFile(name=name, form="flamegraph" if output == "html" else "heatmap"))
        return Sampled(stacks, counted.total, unreadable(counted), tuple(files), self._native)

    def _collapsed(self, folder: Path, during: Slice | None, *options: str) -> str:
        made = folder / "collapsed.part"
        self._convert(made, "-o", "collapsed", "--threads", *options, *_within(during))
        text = made.read_text(errors="replace")
        made.unlink()
        return text

    def _convert(self, made: Path, *options: str) -> None:
        java = [str(self._java), "-Xmx1g", "-jar", str(self._artefacts.converter)]
        code, output = _run([*java, self._flag, *options, str(self._jfr), str(made)], _CONVERT_WITHIN_S)
        if code or not made.exists():
            said = error_lines.error_line(output) or f"status {code}"
            raise ProfilerError(f"what async-profiler wrote could not be converted: {said}")


def _within(during: Slice | None) -> list[str]:
    if during is None:
        return []
    return ["--from", str(during.start // 1_000_000), "--to", str(during.end // 1_000_000)]


def _jvm_of(pid: int) -> tuple[int, Path]:
    """The JVM at or below a process, and its `java`. Raises ProfilerError."""
    for process in procfs.tree(pid):
        try:
            executable = Path(f"/proc/{process}/exe").readlink()
        except OSError:
            continue
        if executable.name == "java":
            return process, executable
    raise ProfilerError("the server has no process that is a JVM")
