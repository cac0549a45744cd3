"""Assign samples to libraries by the table of libraries, from the innermost frame outwards."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from redline.model import Library, Stack, Stacks
from redline.model.profile import UNKNOWN_CALLER, LibraryLanguage, LibraryRuntime
from redline.stats.stacks import COMPILED, KERNEL_MARK, kernel_from

OTHER = "other code"
"""Code without an entry in the table: usually the server's own, or a library that the table lacks."""
UNKNOWN = "unknown"
"""Code without a name: no frame of the stack has one, or a runtime compiled the code and wrote down no names."""
KERNEL = "kernel"
"""Kernel code without an entry in the table."""

_NAMELESS = re.compile(r"\[.*\]|0x[0-9a-f]+|[^/]*\.so(?:\.[\d.]+)?|")
_NATIVE = re.compile(r"[A-Za-z_~][^./ ]*(?:<.*>[^./ ]*)?")
"""Names of C and C++ functions, which those of virtual machines do not match."""
_MAIN = "main"
_REASONS = 3
_INSTALLED = re.compile(r"(?:(?:site|dist)-packages|node_modules)/")
_INSTALLED_PACKAGE = re.compile(r".*(?:(?:site|dist)-packages|node_modules)/(?P<name>(?:@[\w.-]+/)?[\w-]+)")
"""The package of a file, by the folder in which installers put it."""
_GO_MODULE = re.compile(
    r"[(*]*(?P<name>(?:(?:github|gitlab)\.com|bitbucket\.org|golang\.org)/[\w-]+/[\w-]+|[\w-]+(?:\.[\w-]+)+/[\w-]+)"
)
"""A Go module: its import path begins with a host, so no shorter package can contain it."""
_IN_FILE = re.compile(r".*[( ](?:file://)?((?:[^( ]*/|node:)[^() ]+)\)?")
_LEADING = re.compile(r"^[<&*(]*(?:(?:mut|dyn|const|impl) )?")
_END_OF_PART = re.compile(r"[.:/$]")
_FORMS: tuple[tuple[LibraryLanguage, re.Pattern[str]], ...] = (
    ("javascript", re.compile(r"(?:JS|LazyCompile|Function|Script|Eval|RegExp):(?!:).*|.* node:.*")),
    ("python", re.compile(r".*\((?:.*\.py(?::\d+)?|<.*>)\)")),
    ("native", re.compile(r".*::.*")),
)
"""Languages by the form of a frame. A frame of no form is Go's or C's, in the profile of a JVM Java's or the like."""
_OBJECT = re.compile(r"\[(?P<name>[^\]]+)\]|(?P<plain>[^/]+\.so(?:\.[\d.]+)?)")


class Libraries:
    """A table of libraries, indexed for many look-ups. The first of two entries for a name counts.

    Entries for other runtimes than the profiled program's are left out.
    """

    def __init__(self, table: Iterable[Library], runtime: LibraryRuntime | None = None) -> None:
        self.table = tuple(library for library in table if library.runtime in (None, runtime))
        self._plain: LibraryLanguage = "jvm" if runtime == "jvm" else "go"
        self._packages: dict[str, list[Library]] = {}
        for library in self.table:
            for package in library.packages:
                self._packages.setdefault(package.replace("/", "."), []).append(library)
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
        """The library of a normal frame: by its whole name, by the longest package that contains it, or by its folder.

        A package of Go whose path begins with a host, and what an installer put into `site-packages` or
        `node_modules`, need no entry in the table.
        """
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
        as OTHER, unless a runtime itself calls it. Code that a runtime compiled without a name is UNKNOWN, whatever
        called it: it is anybody's. The kernel never counts for a program: if none of its frames decides, it counts as
        KERNEL.
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

    def why_unknown(self, stacks: Stacks) -> str:
        """Why the samples that count as UNKNOWN have no name, the most frequent reason first; empty if none."""
        reasons = Counter[str]()
        for stack, weight in stacks.weights.items():
            if self.of_stack(stack) == UNKNOWN:
                reasons[_why_nameless(stack.frames)] += weight
        return "; ".join(reason for reason, _ in reasons.most_common(_REASONS))

    def _walk(self, frames: Sequence[str]) -> str:
        first, own, nameless = kernel_from(tuple(frames)), "", False
        for at in range(len(frames) - 1, -1, -1):
            library = self.of_frame(frames[at], kernel=at >= first)
            if library and library.counts_for == "itself":
                return library.name
            if frames[at] in (COMPILED, UNKNOWN_CALLER):
                return UNKNOWN
            if library is None and at < first and not self._is_passed(frames, at):
                return OTHER
            if library and (library.callees or not nameless):
                own = own or library.name
            nameless = nameless or _NAMELESS.fullmatch(frames[at]) is not None
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
        language = next((language for language, form in _FORMS if form.fullmatch(name)), self._plain)
        file = _IN_FILE.fullmatch(name)
        part = _INSTALLED.split(file[1] if file else name)[-1]
        part = _LEADING.sub("", part).replace("/", ".")
        installed = _installed(name, language)
        least = len(installed.name) if installed and language == "go" else 0
        for end in (len(part), *(mark.start() for mark in reversed(list(_END_OF_PART.finditer(part))))):
            for library in self._packages.get(part[:end], ()) if end >= least else ():
                if library.language in (None, language):
                    return library
        return installed


def _installed(frame: str, language: LibraryLanguage) -> Library | None:
    """A library that the table lacks, by the folder or the import path that its frame names."""
    form = {"go": _GO_MODULE, "javascript": _INSTALLED_PACKAGE, "python": _INSTALLED_PACKAGE}.get(language)
    match = form.match(frame) if form else None
    return Library(name=match["name"], packages=(match["name"],)) if match else None


def _why_nameless(frames: Sequence[str]) -> str:
    """Why a stack of UNKNOWN has no name, by its innermost nameless frame."""
    if frames[:1] == (UNKNOWN_CALLER,):
        return "their stacks are deeper than the profiler follows, and who called them decides"
    frame = next((frame for frame in reversed(frames) if frame == COMPILED or _NAMELESS.fullmatch(frame)), "")
    if frame == COMPILED:
        return "a runtime compiled this code and wrote down no names of its functions (a JVM needs `runtime: jvm`)"
    match = _OBJECT.fullmatch(frame)
    name = (match["name"] or match["plain"]) if match else ""
    return f"`{name}` has no symbols" if name and name != UNKNOWN else "its addresses are in no file that is known"


def _whole(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
