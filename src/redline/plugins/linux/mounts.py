"""What the mount that holds a file forbids: statvfs(3), and /proc/self/mountinfo for its name."""

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def said_of_noexec(path: Path) -> str:
    """`/tmp is mounted noexec`, where that forbids to execute what is at the path; else empty."""
    try:
        forbidden = os.statvfs(path).f_flag & os.ST_NOEXEC
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines() if forbidden else []
    except OSError:
        return ""
    whole = path.resolve()
    points = (Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[4])) for line in lines)
    above = sorted((point for point in points if whole.is_relative_to(point)), key=lambda point: len(point.parts))
    return f"{above[-1]} is mounted noexec" if above else ""
