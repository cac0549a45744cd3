"""Reads the counters that a HotSpot JVM keeps in a file for `jstat`: no attaching, and the JVM does nothing for it.

Source of the format: `perfMemory.hpp` and `perfData.hpp` of OpenJDK, version 2.0, which JDK 8 to 25 write.
"""

import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux import procfs

_PROLOGUE = struct.Struct("<IBBBBiiqii")  # the magic number is big-endian, all else as the byte order says
_ENTRY = struct.Struct("<iiibBBBi")
_MAGIC = 0xC0C0FECA
_LITTLE_ENDIAN = 1
_LONG = struct.Struct("<q")
_MOST_BYTES = 1 << 20
FREQUENCY = "sun.os.hrt.frequency"
"""Ticks a second: the unit of every counter of time."""


@dataclass(frozen=True)
class PerfData:
    """The counters of one JVM: where each 64-bit number stands in the file, and the texts, which do not change."""

    path: str
    places: dict[str, int]
    texts: dict[str, str]

    @classmethod
    def of(cls, pid: int, proc: str = "/proc") -> "PerfData | None":
        """Those of a process; None if it is no JVM, keeps none (`-XX:-UsePerfData`), or may not be looked into."""
        found = _file_of(f"{proc}/{pid}")
        return cls.read(found) if found else None

    @classmethod
    def read(cls, path: str) -> "PerfData | None":
        """Those of a file; None for one of another format, or that is not complete yet."""
        content = procfs.read_bytes(path)[:_MOST_BYTES]
        places: dict[str, int] = {}
        texts: dict[str, str] = {}
        try:
            magic, order, major, _, accessible, *_, at, count = _PROLOGUE.unpack_from(content)
            if (magic, order, major, accessible) != (_MAGIC, _LITTLE_ENDIAN, 2, 1):
                return None
            for _ in range(count):
                length, name_at, size, kind, *_, value_at = _ENTRY.unpack_from(content, at)
                name = content[at + name_at : content.index(b"\0", at + name_at)].decode("ascii", "replace")
                if size == 0 and kind == ord("J") and 0 < at + value_at <= len(content) - _LONG.size:
                    places[name] = at + value_at
                elif kind == ord("B"):
                    raw = content[at + value_at : at + value_at + size]
                    texts[name] = raw.partition(b"\0")[0].decode("utf-8", "replace")
                if length <= 0:
                    return None
                at += length
        except (struct.error, ValueError):
            return None
        return cls(path, places, texts)

    def values(self, *names: str) -> dict[str, int]:
        """What these numbers are now, as far as there are any."""
        content = procfs.read_bytes(self.path)
        known = ((name, self.places.get(name)) for name in names)
        return {
            name: _LONG.unpack_from(content, at)[0]
            for name, at in known
            if at is not None and at + _LONG.size <= len(content)
        }

    def matching(self, start: str, end: str) -> list[str]:
        """The names of numbers that begin and end so."""
        return [name for name in self.places if name.startswith(start) and name.endswith(end)]


def _file_of(process: str) -> str | None:
    """`/tmp/hsperfdata_USER/PID`, with the process's own root and its number in its own namespace.

    Everybody can make files of such names there, so only those of the process's user count.
    """
    status = procfs.read_bytes(f"{process}/status")
    line = next((each for each in status.split(b"\n") if each.startswith(b"NSpid:")), b"")
    inner = line.split()[-1].decode() if line else Path(process).name
    try:
        user = Path(process).stat().st_uid
        paths = Path(f"{process}/root/tmp").glob(f"hsperfdata_*/{inner}")
        return next((str(path) for path in paths if _is_file_of(path, user)), None)
    except OSError:
        return None


def _is_file_of(path: Path, user: int) -> bool:
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid == user
