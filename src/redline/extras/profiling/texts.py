"""Read profilers' output as Stacks, and write Stacks for flame graphs and speedscope. Pure."""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from redline.model import NativeMemory, ProfileUnit, Slice, Stack, Stacks, Thread
from redline.model.profile import UNKNOWN_CALLER

MOST_SLICES = 60
MOST_THREADS = 30
KERNEL = "_[k]"
_HEAD = re.compile(r"(?P<name>.*?)\s+(?P<tid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):\s*")
_FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+) (?P<symbol>.+) \((?P<file>.*)\)")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_HIGHEST_OF_USERS = 1 << 63
_PY_SPY_PROCESS = re.compile(r"process \d+:\"")
_PY_SPY_THREAD = re.compile(r"thread \((?P<tid>\d+)\)(?:: (?P<name>.*))?")
_UNREADABLE = ("[unknown_", "[not_walkable_", "[break_", "[deoptimization]")
"""Frames by which async-profiler marks stacks that it could not walk."""
_NATIVE = re.compile(r"-\s+(?P<purpose>\S.*?) \(reserved=\d+KB, committed=(?P<kib>\d+)KB", re.MULTILINE)
_SPEEDSCOPE_UNITS = {"samples": "none", "bytes": "bytes", "ns": "nanoseconds"}


def slices_of(intervals: Iterable[Slice]) -> tuple[Slice, ...]:
    """Merge intervals with neighbours if there are more than `MOST_SLICES`; bounds are whole milliseconds."""
    whole = [Slice(_rounded(interval.start), _rounded(interval.end)) for interval in intervals]
    whole = [interval for interval in whole if interval.end > interval.start]
    size = max(1, -(-len(whole) // MOST_SLICES))
    groups = [whole[at : at + size] for at in range(0, len(whole), size)]
    return tuple(Slice(group[0].start, group[-1].end) for group in groups)


def _rounded(ns: int) -> int:
    return round(ns / 1e6) * 1_000_000


def in_slices(parts: Iterable[tuple[Slice | None, str]]) -> Stacks:
    """Parse texts of collapsed stacks; every text is from a slice, or from no known time."""
    heads = ((f"# slice {during.start} {during.end} ns\n" if during else "", text) for during, text in parts)
    return Stacks.from_text("".join(head + text for head, text in heads))


def unreadable(stacks: Stacks) -> int:
    """Return the weight of stacks that async-profiler could read only in part."""
    return sum(
        weight
        for stack, weight in stacks.weights.items()
        if not stack.frames or any(frame.startswith(_UNREADABLE) for frame in stack.frames)
    )


def native_memory(summary: str) -> tuple[NativeMemory, ...]:
    """Parse `VM.native_memory summary scale=KB`: memory by purpose, the largest first, from 1 KiB on."""
    purposes = (
        NativeMemory(purpose=line["purpose"], committed_bytes=int(line["kib"]) << 10)
        for line in _NATIVE.finditer(summary)
    )
    return tuple(
        sorted((memory for memory in purposes if memory.committed_bytes), key=lambda memory: -memory.committed_bytes)
    )


_ENTRIES = frozenset({"_start", "__clone3", "clone3", "clone", "start_thread", "runtime.goexit.abi0", "runtime.mstart"})
"""Functions that nobody calls, of every program."""
_OFTEN = 0.05
"""The share of the stacks that end before the limit, from which on their outermost frame is one that nobody calls."""


def perf_stacks(script: Iterable[str], slices: Sequence[Slice], offset_ns: int, deepest: int = 0) -> tuple[Stacks, int]:
    """Return the stacks of `perf script -F comm,tid,time,ip,sym,dso --ns`, by its lines, and the samples without any.

    `offset_ns` is Unix time minus the clock of the samples. Only samples in a slice count; without slices, all.
    A single sample is held at a time: ten minutes of two cores are a gigabyte of lines. Stacks of `deepest` frames that
    do not begin where others do were cut, and begin with UNKNOWN_CALLER.
    """
    weights, lost, starts = Counter[Stack](), 0, [slice_.start for slice_ in slices]
    for head, *lines in _perf_samples(script):
        match = _HEAD.fullmatch(head)
        if match is None:
            continue
        at = int(match["s"]) * 1_000_000_000 + int(match["ns"]) + offset_ns
        place = bisect_right(starts, at) - 1
        during = slices[place] if place >= 0 and at < slices[place].end else None
        if slices and during is None:
            continue
        frames = tuple(_perf_frame(line) for line in reversed(lines) if line.strip())
        lost += not frames
        if frames:
            weights[Stack(frames, Thread(_plain(match["name"].strip()), int(match["tid"])), during)] += 1
    return Stacks(_marked(weights, deepest) if deepest else weights, tuple(slices)), lost


def _marked(weights: Counter[Stack], deepest: int) -> Counter[Stack]:
    """The same stacks, with UNKNOWN_CALLER outside of those that were cut."""
    outermost = Counter[str]()
    for stack, weight in weights.items():
        if len(stack.frames) < deepest:
            outermost[stack.frames[0]] += weight
    called_by_none = _ENTRIES | {frame for frame, seen in outermost.items() if seen >= _OFTEN * outermost.total()}
    marked = Counter[Stack]()
    for stack, weight in weights.items():
        is_cut = len(stack.frames) >= deepest and stack.frames[0] not in called_by_none
        marked[stack._replace(frames=(UNKNOWN_CALLER, *stack.frames)) if is_cut else stack] += weight
    return marked


def _perf_samples(script: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of each sample, which an empty line ends."""
    sample = list[str]()
    for line in chain(script, [""]):
        if plain := line.removesuffix("\n"):
            sample.append(plain)
        elif sample:
            yield sample
            sample = []


@lru_cache(maxsize=1 << 15)  # the same few thousand lines come again and again
def _perf_frame(line: str) -> str:
    match = _FRAME.fullmatch(line.rstrip())
    if match is None:
        return "[unknown]"
    name = _OFFSET.sub("", match["symbol"])
    if name == "[unknown]":
        name = f"[{match['file'].strip('[]').rpartition('/')[2] or 'unknown'}]"
    return _plain(name) + (KERNEL if int(match["address"], 16) >= _HIGHEST_OF_USERS else "")


def _plain(name: str) -> str:
    """Return a frame without separators of frames, which names of Rust types contain."""
    return name.replace(";", ",")


def py_spy_stacks(text: str) -> Stacks:
    """The stacks of `py-spy record --format raw --threads`: of all processes, without times."""
    weights = Counter[Stack]()
    for stack, weight in Stacks.from_text(text, "what py-spy wrote").weights.items():
        frames = [frame for frame in stack.frames if not _PY_SPY_PROCESS.match(frame)]
        thread = _PY_SPY_THREAD.fullmatch(frames[0]) if frames else None
        of = Thread(thread["name"] or "", int(thread["tid"])) if thread else None
        weights[Stack(tuple(frames[1:] if of else frames), of)] += weight
    return Stacks(weights)


def speedscope(stacks: Stacks, name: str, unit: ProfileUnit) -> bytes:
    """JSON for https://www.speedscope.app: all threads together, then single threads, the heaviest first."""
    by_thread: dict[Thread | None, Counter[tuple[str, ...]]] = {}
    for stack, weight in stacks.weights.items():
        by_thread.setdefault(stack.thread, Counter())[stack.frames] += weight
    heaviest = sorted(by_thread.items(), key=lambda item: -item[1].total())[:MOST_THREADS]
    parts = [("all threads", sum(by_thread.values(), Counter[tuple[str, ...]]()))]
    parts += [(str(thread), weights) for thread, weights in heaviest if thread is not None]
    places = {frame: place for place, frame in enumerate(dict.fromkeys(f for frames in parts[0][1] for f in frames))}
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "shared": {"frames": [{"name": frame} for frame in places]},
        "profiles": [
            {
                "type": "sampled",
                "name": part,
                "unit": _SPEEDSCOPE_UNITS[unit],
                "startValue": 0,
                "endValue": weights.total(),
                "samples": [[places[frame] for frame in frames] for frames in weights],
                "weights": list(weights.values()),
            }
            for part, weights in parts
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def collapsed(stacks: Stacks) -> bytes:
    """A line per stack: frames with `;` between them, the outermost first, and the weight. All threads together."""
    weights: dict[str, int] = {}
    for stack, weight in stacks.weights.items():
        if stack.frames:
            frames = ";".join(stack.frames)
            weights[frames] = weights.get(frames, 0) + weight
    return "".join(f"{frames} {weight}\n" for frames, weight in sorted(weights.items())).encode()
