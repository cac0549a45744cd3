"""Normalise sampled stacks, and sum them by frame, by thread and as trees. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nlargest

from redline.model import FlameGraph, FlameNode, Slice, Stack, Stacks, Thread
from redline.model.profile import UNKNOWN_CALLER

KERNEL_MARK = "_[k]"
"""The suffix of kernel functions, as async-profiler and stackcollapse-perf.pl write them."""
UNNAMED = "unnamed"
COMPILED = "[compiled code without a name]"
"""The frame of code that a runtime made while it ran, and that no map names."""

_ENTRY = re.compile(r"(?:entry_SYSCALL_64|do_syscall_64|asm_(?:exc|sysvec|common)_|el0t?_|ret_from_fork).*")
"""The kernel's entry functions, for profilers that do not mark kernel functions."""
_TIMER = re.compile(r"(?:asm_|__)?sysvec_apic_timer_interrupt(?:_\[k\])?|el1h?_(?:64_)?irq(?:_\w+)?(?:_\[k\])?")
"""The interrupt that takes the sample, which perf shows on some machines: the code below it was running."""
_MARK = re.compile(r"_\[[a-jl-z0-9]\]$| \(inlined\)$")
_CLASS = re.compile(r"^(?:[\w$-]+/)+(?:[A-Z][\w$-]*|[\w-]*\$[\w$-]*)\.[^/]+$")
_NUMBERED = (
    (re.compile(r"^\[(?:perf-\d+\.map|anon|JIT\] tid \d+|JIT.*)\]?$"), COMPILED),
    (re.compile(r"\$\$Lambda(?:\$\d+)?(?:[/+.]?0x[0-9a-f]+|/\d+)?"), "$$Lambda"),
    (re.compile(r"[/+.]0x[0-9a-f]{4,}"), ""),
    (re.compile(r"^(JS|LazyCompile|Function|Script):[~^+*]'?"), r"\1:"),
    (re.compile(r"(Generated\w+Accessor|\$Proxy|__)\d+"), r"\1"),
    (re.compile(r"::h[0-9a-f]{16}$|(?:\.(?:llvm|isra|constprop|part|cold|lto_priv)(?:\.\d+)?)+$|\+0x[0-9a-f]+$"), ""),
)
_NUMBERS = re.compile(r"(?:[-#_ .:/]+\d+)+(?=$|[-#_ .:/@])|\d+$")


@lru_cache(maxsize=1 << 16)
def normal_frame(frame: str) -> str:
    """A frame's name without what differs from start to start: numbers of hidden classes, hashes, how it was compiled.

    `sttp/tapir/Handler$$Lambda$14/0x0800.apply_[j]` is `sttp.tapir.Handler$$Lambda.apply`. The kernel's mark stays.
    """
    name = _MARK.sub("", frame)
    for numbered, plain in _NUMBERED:
        name = numbered.sub(plain, name)
    return name.replace("/", ".") if _CLASS.match(name) else name or "[unknown]"


@lru_cache(maxsize=1 << 14)
def thread_group(thread: Thread | None) -> str:
    """A thread's name without numbers, so that a pool's threads share a name. `io-compute-3` is `io-compute`."""
    if thread is None:
        return ""
    return _NUMBERS.sub("", thread.name).strip(" -#_.:/") or thread.name or UNNAMED


def kernel_from(frames: tuple[str, ...]) -> int:
    """The index of the first kernel frame, from which on all are the kernel's; the number of frames without any."""
    return next((at for at, frame in enumerate(frames) if _is_of_kernel(frame)), len(frames))


@lru_cache(maxsize=1 << 16)
def _is_of_kernel(frame: str) -> bool:
    return frame.endswith(KERNEL_MARK) or _ENTRY.fullmatch(frame) is not None


def normal(stacks: Stacks, *, of_classes: bool = False) -> Stacks:
    """Stacks with normal frames and without the timer's interrupt on top; equal stacks are summed.

    With `of_classes`, the innermost frames are not functions but what was allocated or waited for: `[byte[]]`.
    """
    weights = Counter[Stack]()
    for stack, weight in stacks.weights.items():
        frames = [normal_frame(frame) for frame in stack.frames]
        if of_classes and frames:
            frames[-1] = f"[{frames[-1].removesuffix(KERNEL_MARK)}]"
        while len(frames) > 1 and _TIMER.fullmatch(frames[-1]):
            frames.pop()
        weights[stack._replace(frames=tuple(frames))] += weight
    return Stacks(weights, stacks.slices)


def cut_weight(stacks: Stacks) -> int:
    """The weight of the stacks that were deeper than the profiler follows."""
    return sum(weight for stack, weight in stacks.weights.items() if stack.frames[:1] == (UNKNOWN_CALLER,))


def self_weights(stacks: Stacks) -> Counter[str]:
    """Self weight per frame: the weight of the stacks that end in it. Stacks without frames do not count."""
    weights = Counter[str]()
    for stack, weight in stacks.weights.items():
        if stack.frames:
            weights[stack.frames[-1]] += weight
    return weights


def total_weights(stacks: Stacks) -> Counter[str]:
    """Total (inclusive) weight per frame: the weight of the stacks that contain it, counted once per stack."""
    weights = Counter[str]()
    for stack, weight in stacks.weights.items():
        for frame in set(stack.frames):
            weights[frame] += weight
    return weights


def thread_weights(stacks: Stacks) -> dict[str, tuple[int, int]]:
    """The number of threads and their weight per thread group, heaviest first."""
    weights, members = Counter[str](), dict[str, set[Thread | None]]()
    for stack, weight in stacks.weights.items():
        group = thread_group(stack.thread)
        weights[group] += weight
        members.setdefault(group, set()).add(stack.thread)
    return {group: (len(members[group]), weight) for group, weight in weights.most_common()}


@dataclass(slots=True)
class _Branch:
    frame: str
    depth: int
    weight: int = 0
    slow: int = 0
    below: dict[str, "_Branch"] = field(default_factory=dict)


def flame_graph(
    stacks: Stacks,
    library_of: Callable[[str, int], str],
    *,
    least: float,
    most: int,
    slow: AbstractSet[Slice] = frozenset(),
) -> FlameGraph:
    """The tree of all stacks below their thread groups, of at most `most` frames with at least `least` of the whole.

    `slow` are the slices of slow moments. `library_of` gets a frame with its depth: at 0 it is a thread group.
    """
    root, total, slow_total = _Branch("", -1), stacks.total, 0
    for frames, (weight, slow_weight) in _by_path(stacks, slow).items():
        branch, slow_total = root, slow_total + slow_weight
        for depth, frame in enumerate(frames):
            below = branch.below.get(frame)
            if below is None:
                below = branch.below[frame] = _Branch(frame, depth)
            branch = below
            branch.weight += weight
            branch.slow += slow_weight
    heavy = [branch for branch in _preorder(root) if branch.weight >= least * total]
    # No frame outweighs its parent, and of equals the parent comes first, so the frames that are kept form a tree.
    kept = {id(branch) for branch in nlargest(most, heavy, key=lambda branch: (branch.weight, -branch.depth))}
    shown = [branch for branch in _preorder(root) if id(branch) in kept]
    depths = {branch.frame: branch.depth for branch in reversed(shown)}  # the first place of every frame
    places = {frame: place for place, frame in enumerate(depths)}
    return FlameGraph(
        total=total,
        slow=slow_total,
        least=max(least, min((branch.weight for branch in shown), default=0) / total if len(heavy) > most else 0.0),
        frames=tuple(places),
        libraries=tuple(library_of(frame, depth) for frame, depth in depths.items()),
        nodes=tuple(FlameNode(branch.depth, places[branch.frame], branch.weight, branch.slow) for branch in shown),
    )


def _by_path(stacks: Stacks, slow: AbstractSet[Slice]) -> dict[tuple[str, ...], tuple[int, int]]:
    paths: dict[tuple[str, ...], tuple[int, int]] = {}
    for stack, weight in stacks.weights.items():
        path = (thread_group(stack.thread), *stack.frames)
        before, slow_before = paths.get(path, (0, 0))
        paths[path] = before + weight, slow_before + (weight if stack.slice in slow else 0)
    return paths


def _preorder(root: _Branch) -> Iterable[_Branch]:
    waiting = [root]
    while waiting:
        branch = waiting.pop()
        if branch is not root:
            yield branch
        waiting += sorted(branch.below.values(), key=lambda branch: (branch.weight, branch.frame))
