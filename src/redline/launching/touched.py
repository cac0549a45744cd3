"""Which functions a range of commits touches, by the definitions that enclose its changed lines.

A line belongs to the nearest definition above it that is indented less, as people and formatters write code. Names in
the heads of git's hunks are no match: they are those of the line above, also where a changed line is outside of it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from redline.launching.revisions import Repository
from redline.model import Plan, TouchedFunction

_LONGEST_LINE = 1_000
"""A file with longer lines was generated or minified."""
_TAB = 8

_BY_TYPE = frozenset(("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "java", "cs", "m", "mm", "d"))
"""Suffixes of languages that define a function by its type and its name, without a word for it."""
_SCRIPTS = frozenset(("js", "mjs", "cjs", "jsx", "ts", "mts", "tsx"))
_BY_WORD = frozenset(("py", "rs", "go", "kt", "scala", "rb", "php", "swift", "zig", "ex", "lua", "groovy", *_SCRIPTS))

_WORD = re.compile(
    r"\b(?:func|fun|fn|def|defp|function\*?)\s+(?:<[^()]*>\s+)?(?:\((?P<receiver>[^)]*)\)\s*)?"
    r"(?:[\w.]+(?:<[^()]*>)?\??[.:])?(?P<name>\w+)"
)
_ASSIGNED = re.compile(
    r"^\s*[^=({:]*?(?<![\w$])(?P<name>[\w$]+)\s*(?:(?::(?:[^=]|=>)*?)?=(?!>)|:)\s*(?:async\s+)?"
    r"(?:function\b|\((?:[^()]|\([^()]*\))*(?:\)\s*(?::[^=]*)?=>|$)|[\w$]+\s*=>)"
)
"""A name, and the type that it has in TypeScript; then a function."""
_VALUE = re.compile(r"\bval\s")
_METHOD = re.compile(
    r"^\s*(?:(?:static|async|get|set|public|private|protected|override|\*)\s+)*(?P<name>[\w$#]+)\s*(?:<[^()]*>)?"
    r"\([^;'`\"]*\)\s*(?::[^=;]*)?\{\s*$"
)
_CONSTRUCTOR = re.compile(r"^\s*(?![A-Z\d_]+\s*\()[A-Z]\w*\s*\([^()]*\)\s*(?:throws\s[^{]*|:.*)?\{\s*\}?\s*$")
"""It has no type; a macro of C is in capitals."""
_ARROW = re.compile(r"\)\s*(?:where\s.*)?=>")
_TYPED = re.compile(
    r"^\s*(?P<type>(?:[\w:<>,\[\]?.~]+[\s*&]+)*)(?P<within>(?:\w+(?:<[^<>]*>)?::)*)(?P<name>~?\w+)\s*\((?P<rest>.*)$"
)
_CLASS = re.compile(
    r"\b(?:class|struct|impl(?:<[^>]*>)?(?:\s+[\w:<>, ]+\s+for)?|trait|interface|object|namespace|mod|enum"
    r"|record|module)\s+(?P<name>\w+)"
)
_NOISE = re.compile(
    r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]|@\w+(?:\([^()]*\))?|\b(?:alignas|noexcept|throws)\s*\([^()]*\)"
)
_STATEMENTS = frozenset(
    (
        *("assert", "await", "case", "catch", "delete", "do", "elif", "else", "except", "for", "goto", "if", "loop"),
        *("match", "new", "return", "sizeof", "switch", "throw", "typeof", "unless", "until", "using", "while", "with"),
        "yield",
    )
)
_SKIPPED = re.compile(r"^\s*(?:[)\]}{]|#|//|/?\*)")
"""Lines that end what they stand below, directives and comments: they enclose nothing."""
_LABEL = re.compile(r"^\s*\w+:\s*$")


def touched_in(plan: Plan) -> tuple[TouchedFunction, ...] | None:
    """Return the functions that differ between the two revisions of a comparison; None if it is of other servers.

    Raises UsageError if git cannot tell.
    """
    variants = plan.suite.variants
    sides = [None if variant.is_attached else variant.catalogued.checkout for variant in variants]
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[0].repository != sides[1].repository:
        return None
    repository = Repository(Path(sides[0].repository))
    return touched_functions(repository.whole_diff(sides[0].revision, sides[1].revision))


def touched_functions(diff: str) -> tuple[TouchedFunction, ...]:
    """The functions with changed lines, by a diff that holds whole files. A renamed function counts with both names."""
    found = dict[TouchedFunction, None]()
    for path, kind, lines in _files(diff.split("\n")):
        if any(len(line) > _LONGEST_LINE for line in lines):
            continue
        for unseen in "+-":
            side = [(line[1:], line[0] == {"+": "-", "-": "+"}[unseen]) for line in lines if line[0] != unseen]
            found |= dict.fromkeys(_touched(path, kind, side))
    return tuple(sorted(found, key=lambda one: (one.file, one.within, one.name)))


def _files(lines: Iterable[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield path, suffix and the lines of hunks of every file of code in a diff."""
    path, inside, known = "", False, list[str]()
    for line in (*lines, "diff "):
        if line.startswith("diff "):
            kind = PurePosixPath(path).suffix.lstrip(".").lower()
            if known and (kind in _BY_TYPE or kind in _BY_WORD):
                yield path, kind, known
            path, inside, known = "", False, []
        elif inside:
            if line[:1] in ("+", "-", " "):
                known.append(line)
        elif line.startswith("@@"):
            inside = True
        elif line.startswith(("--- ", "+++ ")) and not line.endswith("/dev/null"):
            path = line[4:].strip().strip('"')[2:]


def _touched(path: str, kind: str, side: Sequence[tuple[str, bool]]) -> Iterator[TouchedFunction]:
    lines = [line.expandtabs(_TAB) for line, _ in side]
    for at, (_, changed) in enumerate(side):
        if changed and lines[at].strip() and (one := _enclosing(lines, at, kind)) is not None:
            name, within = one
            yield TouchedFunction(name=name, within=within, file=path)


def _enclosing(lines: Sequence[str], at: int, kind: str) -> tuple[str, str] | None:
    """The innermost function that holds a line, or begins there, and the class around it."""
    found, limit = definition(lines[at], kind), _indent(lines[at])
    for line in reversed(lines[:at]):
        if limit == 0 or (found is not None and found[1]):
            break
        if not line.strip() or _indent(line) >= limit or _SKIPPED.match(line):
            continue
        if kind in _BY_TYPE and _LABEL.match(line):
            continue
        limit = _indent(line)
        if found is None:
            found = definition(line, kind)
        elif around := _CLASS.search(line):
            found = found[0], around["name"]
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def definition(line: str, kind: str) -> tuple[str, str] | None:
    """The name of a function that begins in a line, and its class where the line has it; None if none does."""
    line = _NOISE.sub("", line)
    if kind in _BY_TYPE:
        return _typed(line, kind)
    named = _WORD.search(line) if kind in _BY_WORD else None
    if named is not None and (kind == "go" or named["receiver"] is None):
        receiver = re.findall(r"\w+", re.sub(r"\[.*\]", "", named["receiver"] or ""))
        return named["name"], receiver[-1] if receiver else ""
    named = None
    if kind in _SCRIPTS:
        named = _ASSIGNED.match(line) or _METHOD.match(line)
    elif kind == "lua" or (kind == "scala" and _VALUE.search(line)):
        named = _ASSIGNED.match(line)
    return None if named is None or named["name"] in _STATEMENTS else (named["name"], "")


def _typed(line: str, kind: str) -> tuple[str, str] | None:
    """The definition of a function by its type: `static int often(long n) {`; or `often(long n)` after its type."""
    named = _TYPED.match(line)
    if named is None or named["name"] in _STATEMENTS:
        return None
    if line.rstrip().endswith(";") and not (kind == "cs" and _ARROW.search(named["rest"])):
        return None
    words = re.findall(r"\w+", named["type"])
    if _STATEMENTS.intersection(words) or not (words or not line[0].isspace() or _CONSTRUCTOR.match(line)):
        return None
    within = re.findall(r"\w+", re.sub(r"<.*?>", "", named["within"]))
    return named["name"], within[-1] if within else ""
