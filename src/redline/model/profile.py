"""A profile of one trial: facts about it, and the sampled stacks as a value.

The text form of stacks, gzip'd in a run's directory, is the format of collapsed stacks with two additions:

    # slice 1763834400000000000 1763834400100000000 ns
    [http-worker-1 tid=4711];java/lang/Thread.run;com/acme/Handler.handle_[j];tcp_sendmsg_[k] 12
    [GC Thread#0 tid=4699];start_thread;G1ParEvacuateFollowersClosure::do_void 3
    # slice 1763834400100000000 1763834400200000000 ns

- A line is a stack, the outermost frame first, then a space and its weight: a whole number. Weights of equal stacks
  add up. If the first frame is `[NAME tid=NUMBER]` or `[tid=NUMBER]`, as async-profiler writes it, it is the thread.
- `# slice START END ns` says when the stacks below it were sampled, in Unix time, from START up to END. A slice
  without stacks counts: nothing was sampled in it. Stacks above the first slice belong to none.
- Other lines that begin with `# ` are comments, and empty lines mean nothing.

Every tool that reads collapsed stacks (flamegraph.pl, inferno, speedscope) reads the text without the lines that
begin with `#`. Frames have the names that the profiler gave them.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from redline.errors import Location, StoreError, WrongValueError
from redline.model.base import Frozen, omitted_if_default

Subject = Literal["server", "engine", "machine", "hop-1", "hop-2", "hop-3", "hop-4"]
HOPS: tuple[Subject, ...] = ("hop-1", "hop-2", "hop-3", "hop-4")
"""The proxies of a route, the client's first."""

ProfileKind = Literal["cpu", "wall", "alloc", "lock"]
Profile = Literal[ProfileKind, "engine"]
"""The subject of a profile: the server, in one of these kinds, or the CPU time of the load engine."""

ProfileUnit = Literal["samples", "bytes", "ns"]
_STACK = re.compile(r"(?P<frames>.*\S) +(?P<weight>\d{1,18})")
_SLICE = re.compile(r"# slice (?P<start>\d{1,19}) (?P<end>\d{1,19}) ns")
_THREAD = re.compile(r"\[(?:(?P<name>.*) )?tid=(?P<tid>\d{1,10})\]")


class Slice(NamedTuple):
    """A span of time in Unix ns, from `start` up to `end`."""

    start: int
    end: int


class ProfileFile(Frozen):
    """A file of a profiler; `stacks` is in the text form above, gzip'd."""

    name: str = Field(description="relative to the run's directory, such as `profiles/0009-SLUG.cpu/stacks.gz`")
    form: Literal["stacks", "jfr", "speedscope", "flamegraph", "heatmap"]


class NativeMemory(Frozen):
    """Memory that a JVM has allocated for one purpose."""

    purpose: str = Field(description="as the JVM names it: `Java Heap`, `Thread`, `Code`; `Other` has direct buffers")
    committed_bytes: int = Field(ge=0)


UNKNOWN_CALLER = "[unknown caller]"
"""The outermost frame of a stack that was deeper than the profiler follows: who called the next frame is not known."""


class ProfileFacts(Frozen):
    """Facts about a profile: subject, profiler and result. The stacks are in the file of the form `stacks`."""

    kind: ProfileKind
    subject: Subject
    profiler: str = Field(description="its name and version, such as `async-profiler 4.6`")
    event: str = Field(
        description="the sampled event: `cpu-clock` by perf, `running threads` or `all threads` by py-spy, "
        "the `kind` by async-profiler, which takes the timer that the machine has"
    )
    interval: int = Field(gt=0, description="ns of CPU or wall time between samples of a thread; `alloc`: bytes")
    unit: ProfileUnit = Field(default="samples", description="of the weights of stacks")
    samples: int = Field(ge=0, description="while it was profiled")
    lost: int = omitted_if_default(0, "samples without a stack, or that the profiler dropped", ge=0)
    deepest: int = omitted_if_default(0, "frames to which stacks were followed; 0 if they do not end there", ge=0)
    native: tuple[NativeMemory, ...] = omitted_if_default((), "of a JVM, when an `alloc` profile ended")
    started: Slice | None = omitted_if_default(None, "from the command to begin until it sampled, in Unix ns")
    stopped: Slice | None = omitted_if_default(None, "from the command to end until it ended, if it did")
    files: tuple[ProfileFile, ...] = ()
    problem: str = omitted_if_default("", "why there are no stacks; empty if there are")
    uncounted: str = omitted_if_default("", "why system calls were not counted")

    @property
    def sampled(self) -> Slice | None:
        """The time in which it certainly sampled; None if not known, as in recordings of earlier versions."""
        return Slice(self.started.end, self.stopped.start) if self.started and self.stopped else None

    @property
    def stacks(self) -> str | None:
        """The file with the stacks, or None."""
        return next((file.name for file in self.files if file.form == "stacks"), None)


class Thread(NamedTuple):
    """A thread: its name, which may be empty, and its number."""

    name: str
    tid: int

    def __str__(self) -> str:
        return f"[{self.name} tid={self.tid}]" if self.name else f"[tid={self.tid}]"


class Stack(NamedTuple):
    """Frames, the outermost first, of a thread in a slice, as far as known."""

    frames: tuple[str, ...]
    thread: Thread | None = None
    slice: Slice | None = None


@dataclass(frozen=True)
class Stacks:
    """Weights by stack, and all slices in order of time, those without samples too."""

    weights: Mapping[Stack, int] = field(default_factory=dict)
    slices: tuple[Slice, ...] = ()

    @property
    def total(self) -> int:
        """The sum of all weights."""
        return sum(self.weights.values())

    @classmethod
    def merged(cls, many: Iterable["Stacks"]) -> "Stacks":
        """The sum of profiles: weights of equal stacks add up."""
        weights, slices = Counter[Stack](), set[Slice]()
        for stacks in many:
            weights.update(stacks.weights)
            slices.update(stacks.slices)
        return cls(weights, tuple(sorted(slices)))

    @classmethod
    def from_text(cls, text: str, file: str = "the profile") -> "Stacks":
        """Parse the text form. Raises StoreError with the wrong line."""
        weights, slices, during = Counter[Stack](), set[Slice](), None
        for number, line in enumerate(text.split("\n"), start=1):
            if line.startswith("# slice "):
                during = _slice(line, file, number)
                slices.add(during)
            elif line.startswith("# ") or not line.strip():
                continue
            elif stack := _STACK.fullmatch(line):
                first, *frames = stack["frames"].split(";")
                thread = _THREAD.fullmatch(first)
                of = Thread(thread["name"] or "", int(thread["tid"])) if thread else None
                weights[Stack(tuple(frames) if of else (first, *frames), of, during)] += int(stack["weight"])
            else:
                raise _wrong(file, number, "neither a stack with its weight nor a slice")
        return cls(+weights, tuple(sorted(slices)))

    @classmethod
    def from_bytes(cls, content: bytes, file: str = "the profile") -> "Stacks":
        """Parse the gzip'd text form. Raises StoreError."""
        try:
            text = gzip.decompress(content).decode(errors="replace")
        except (OSError, EOFError, zlib.error):
            raise StoreError(f"{file} is not gzip'd text", hint="profile again, or remove the file") from None
        return cls.from_text(text, file)

    def to_text(self) -> str:
        """The text form; the same stacks give the same text."""
        by_slice: dict[Slice | None, list[str]] = {None: [], **{slice_: [] for slice_ in self.slices}}
        for stack, weight in self.weights.items():
            frames = (*((str(stack.thread),) if stack.thread else ()), *stack.frames)
            by_slice.setdefault(stack.slice, []).append(f"{';'.join(frames)} {weight}")
        lines = sorted(by_slice.pop(None))
        for during in sorted(filter(None, by_slice)):
            lines += [f"# slice {during.start} {during.end} ns", *sorted(by_slice[during])]
        return "".join(f"{line}\n" for line in lines)

    def to_bytes(self) -> bytes:
        """The text form, gzip'd."""
        return gzip.compress(self.to_text().encode(), mtime=0)


def _slice(line: str, file: str, number: int) -> Slice:
    match = _SLICE.fullmatch(line)
    if not match or int(match["end"]) <= int(match["start"]):
        raise _wrong(file, number, "not a slice from START up to END")
    return Slice(int(match["start"]), int(match["end"]))


def _wrong(file: str, number: int, what: str) -> StoreError:
    return StoreError(
        f"{what} where stacks were expected",
        hint="write collapsed stacks: frames with `;` between them, a space, and a whole number",
        place=Location(file, number),
    )


LibraryRuntime = Literal["jvm", "engine"]
"""A program whose function names occur in other programs too: a JVM, or the load engine."""
LibraryLanguage = Literal["jvm", "native", "go", "javascript", "python"]
"""The language of a function, by the form of its name; `native` has names with `::`, as those of Rust and C++."""


class Library(Frozen):
    """A library by the names of its frames and threads. `symbols` and `threads` are regular expressions of whole names.

    docs/concepts/profiles.md says how samples are counted.
    """

    name: str = Field(min_length=1, description="its name in reports", examples=["tapir's interpreter"])
    packages: tuple[str, ...] = Field(default=(), description="packages, modules or crates", examples=[["sttp.tapir"]])
    symbols: tuple[str, ...] = Field(default=(), description="patterns of functions", examples=[["tcp_.*", "ip_.*"]])
    threads: tuple[str, ...] = Field(default=(), description="patterns of its own threads", examples=[["GC .*"]])
    counts_for: Literal["itself", "caller"] = Field(
        default="itself", description="`caller`: its samples count for the nearest library that called it"
    )
    callees: bool = omitted_if_default(default=False, description="nameless native functions that it calls are its own")
    kernel: bool = omitted_if_default(default=False, description="its symbols are functions of the kernel")
    runtime: LibraryRuntime | None = omitted_if_default(None, "the only runtime whose profiles can contain it")
    language: LibraryLanguage | None = omitted_if_default(
        None, "the language of its packages: equal names in others are not its own"
    )

    @model_validator(mode="after")
    def _can_be_matched(self) -> Self:
        for name in ("symbols", "threads"):
            for pattern in getattr(self, name):
                try:
                    re.compile(pattern)
                except (re.error, RecursionError, OverflowError) as error:
                    message, hint = f"`{pattern}` is not a valid regex: {error}", "escape special characters by \\"
                    raise WrongValueError(message, hint, field=name) from None
        if not (self.packages or self.symbols or self.threads):
            raise WrongValueError(f"nothing belongs to {self.name}", "name its `packages`", field="packages")
        return self
