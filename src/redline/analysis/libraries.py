"""Assign samples to libraries by the table of libraries, from the innermost frame outwards."""

import re
from collections.abc import Iterable, Sequence

from redline.model import Library, Stack
from redline.model.profile import LibraryRuntime
from redline.stats.stacks import KERNEL_MARK, kernel_from

OTHER = "other code"
"""Code without an entry in the table: usually the server's own, or a library that the table lacks."""
UNKNOWN = "unknown"
"""Stacks in which no frame has a name."""
KERNEL = "kernel"
"""Kernel code without an entry in the table."""

_NAMELESS = re.compile(r"\[.*\]|0x[0-9a-f]+|[^/]*\.so(?:\.[\d.]+)?|")
_NATIVE = re.compile(r"[A-Za-z_~][^./ ]*(?:<.*>[^./ ]*)?")
"""Names of C and C++ functions, which those of virtual machines do not match."""
_MAIN = "main"
_INSTALLED = re.compile(r"(?:site-packages|node_modules)/")
_IN_FILE = re.compile(r".*[( ](?:file://)?([^( ]*/[^() ]+)\)?")
_LEADING = re.compile(r"^[<&*(]*(?:(?:mut|dyn|const|impl) )?")
_END_OF_PART = re.compile(r"[.:/$]")


class Libraries:
    """A table of libraries, indexed for many look-ups. The first of two entries for a name counts.

    Entries for other runtimes than the profiled program's are left out.
    """

    def __init__(self, table: Iterable[Library], runtime: LibraryRuntime | None = None) -> None:
        self.table = tuple(library for library in table if library.runtime in (None, runtime))
        self._packages: dict[str, Library] = {}
        for library in self.table:
            for package in library.packages:
                self._packages.setdefault(package.replace("/", "."), library)
        # Kernel and programs are looked up separately: both have functions of the same names.
        self._symbols = {
            kernel: [
                (_whole(library.symbols), library)
                for library in self.table
                if library.symbols and library.kernel == kernel
            ]
            for kernel in (False, True)
        }
        self._threads = [(_whole(library.threads), library) for library in self.table if library.threads]
        self._frames: dict[bool, dict[str, Library | None]] = {False: {}, True: {}}
        self._owners: dict[str, str] = {}
        self._paths: dict[tuple[str, ...], str] = {}
        self._names: dict[tuple[str, ...], frozenset[str]] = {}

    def of_frame(self, frame: str, *, kernel: bool = False) -> Library | None:
        """The library of a normal frame: by its whole name, otherwise by the longest package that contains it."""
        known = self._frames[kernel]
        if frame not in known:
            known[frame] = self._find(frame, kernel=kernel or frame.endswith(KERNEL_MARK))
        return known[frame]

    def of_thread(self, name: str) -> str:
        """The library that owns a whole thread; empty if none does."""
        if name not in self._owners:
            owners = (library.name for pattern, library in self._threads if pattern.fullmatch(name))
            self._owners[name] = next(owners, "")
        return self._owners[name]

    def of_stack(self, stack: Stack) -> str:
        """The library that a sample of normal frames counts for.

        Everything in a library's own thread counts for that library. Otherwise the innermost frame of a library
        decides; if that library counts for its callers, the next frame outwards does. A frame without a library counts
        as OTHER, unless a runtime itself calls it. The kernel never counts for a program: if none of its frames
        decides, it counts as KERNEL.
        """
        if stack.thread and (owner := self.of_thread(stack.thread.name)):
            return owner
        if stack.frames not in self._paths:
            self._paths[stack.frames] = self._walk(stack.frames)
        return self._paths[stack.frames]

    def names_on(self, stack: Stack) -> frozenset[str]:
        """All libraries on a stack of normal frames, including the library that it counts for."""
        if stack.frames not in self._names:
            first = kernel_from(stack.frames)
            owners = (self.of_frame(frame, kernel=at >= first) for at, frame in enumerate(stack.frames))
            self._names[stack.frames] = frozenset(library.name for library in owners if library)
        return self._names[stack.frames] | {self.of_stack(stack)}

    def _walk(self, frames: Sequence[str]) -> str:
        first, own = kernel_from(tuple(frames)), ""
        for at in range(len(frames) - 1, -1, -1):
            library = self.of_frame(frames[at], kernel=at >= first)
            if library and library.counts_for == "itself":
                return library.name
            if library is None and at < first and not self._is_passed(frames, at):
                return OTHER
            own = own or (library.name if library else "")
            if at == first:
                return own or KERNEL
        return own or UNKNOWN

    def _is_passed(self, frames: Sequence[str], at: int) -> bool:
        """Whether to skip a frame without a library: it has no name, is deep in a runtime, or is its `main`."""
        if _NAMELESS.fullmatch(frames[at]):
            return True
        if frames[at] == _MAIN and at + 1 < len(frames):
            called = self.of_frame(frames[at + 1])
            return called is not None and called.callees
        for frame in reversed(frames[: at + 1]):
            library = self.of_frame(frame)
            if library is not None:
                return library.callees
            if not _NATIVE.fullmatch(frame):
                return False
        return False

    def _find(self, frame: str, *, kernel: bool) -> Library | None:
        name = frame.removesuffix(KERNEL_MARK)
        for pattern, library in self._symbols[kernel]:
            if pattern.fullmatch(name):
                return library
        if kernel:
            return None
        file = _IN_FILE.fullmatch(name)
        name = _INSTALLED.split(file[1] if file else name)[-1]
        name = _LEADING.sub("", name).replace("/", ".")
        ends = [len(name), *(mark.start() for mark in reversed(list(_END_OF_PART.finditer(name))))]
        return next((self._packages[name[:end]] for end in ends if name[:end] in self._packages), None)


def _whole(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
