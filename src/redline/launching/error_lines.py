"""Find the line of a command's output that names the error, which is seldom the last line. Pure.

It is followed by advice (`hint:`, `To add an exception …, call:`), a runtime's own messages (`Node.js v20`),
frames of a stack, and outer commands' messages about inner commands (`make: *** … Error 1`).
"""

import re

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST_LINE = 500

_CRASH = re.compile(
    r"(?:\S+: )?(?:[A-Z]\w*|[\w.$]+\.[\w.$]*)(?:Error|Exception|Exit|Interrupt)(?: \[\w+\])?(?:: |$)"
    r"|\s*Caused by: |Exception in thread |(?:Error|panic|fatal error|terminate called|Unhandled exception\.?): ?\S"
    r"|thread '.*' (?:\(\d+\) )?panicked at "
)
"""How a process of Python, the JVM, Node, Go, Rust or C++ reports why it ends: the last such line counts."""
_ERROR = re.compile(
    r"(?:\S+: )?(?:fatal|error|ERROR|FATAL|Error|E|npm ERR!|npm error)(?:\[\w+\])?(?::| +|$)"
    r"|\[(?:ERROR|FATAL|error)\]"
    r"|\S+:\d+(?::\d+)?: (?:fatal )?error: "
    r"|(?:\S+: )?(?:docker|Error response from daemon): "
    r"|WARNING: \w+ not found for kernel"
)
"""Error lines of git, compilers, apt, Maven, npm, perf and container engines: the first such line counts."""
_PREFIX = re.compile(
    r"^(?:(?:fatal|error|Error|ERROR|E|docker|Error response from daemon|WARNING|npm ERR!|npm error): |\[ERROR\] )+"
)
_BARE = re.compile(r"(?:fatal|error|ERROR|Error|FATAL):?|\[ERROR\]|thread '.*' (?:\(\d+\) )?panicked at .*:")
"""Lines after which the error is in the next line."""
_OF_NOTHING = re.compile(
    r"(?:g?make|ninja)(?:\[\d+\])?: |exit status \d+$|Node\.js v\d|(?:hint|note|help|[Uu]sage|[Ww]arning|WARN): ?"
    r"|See '|Run '|Try '|goroutine \d|Aborted|[})\]^~|\s]+$|BUILD FAIL|\[INFO\]|Error: (?:Could not create|A fatal exc)"
)
"""Lines that say little about the cause. They count only if there are no others."""


_USAGE = re.compile(
    r"(?:usage|synopsis)\b[^:]*:.*|(?:usage|synopsis|name|options|flags|arguments|commands):?", re.IGNORECASE
)
"""The line that begins a program's description of itself, which follows what is wrong with its arguments."""


def usage_from(lines: list[str]) -> int:
    """Return where a program describes itself after it said what is wrong; the number of lines if it does not."""
    begins = next((at for at, line in enumerate(lines) if _USAGE.fullmatch(line)), len(lines))
    return begins or len(lines)


def lines_of(text: str) -> list[str]:
    """Return the lines that are not empty, at most 500 characters long, without colours and control characters."""
    plain = (_CONTROLS.sub("", line).rstrip()[:_LONGEST_LINE] for line in _ESCAPES.sub("", text).split("\n"))
    return [line for line in plain if line]


def error_line(text: str) -> str:
    """Return the line that names the error, else the last line that may; empty without output."""
    said = lines_of(text)
    # What stands below may name an error all the same: argparse ends with it.
    below = [line for line in said[usage_from(said) :] if _CRASH.match(line) or _ERROR.match(line)]
    said = said[: usage_from(said)] + below
    lines = [line for line in said if not _OF_NOTHING.match(line)] or said
    crashes = [at for at, line in enumerate(lines) if _CRASH.match(line)]
    errors = [at for at, line in enumerate(lines) if _ERROR.match(line)]
    # Indented lines belong to something else, such as a stack trace.
    others = [at for at, line in enumerate(lines) if not line[0].isspace()] or list(range(len(lines)))
    candidates = [*crashes[-1:], *errors[:1], *others[-1:]]
    if not candidates:
        return ""
    only_announces = candidates[0] + 1 < len(lines) and _BARE.fullmatch(lines[candidates[0]])
    return lines[candidates[0] + 1 if only_announces else candidates[0]].strip()


def reason(text: str) -> str:
    """Return the line that names the error, without the words by which a tool marks its errors, such as `fatal:`."""
    line = error_line(text)
    return _PREFIX.sub("", line, count=1).strip() or line
