"""A JVM as its process and its file of counters look, under a folder in place of /proc."""

import struct
from pathlib import Path

NUMBERS = {
    "sun.os.hrt.frequency": 1_000_000,
    "sun.rt.safepoints": 7,
    "sun.rt.safepointTime": 5_000,
    "sun.rt.safepointSyncTime": 2_000,
    "sun.ci.totalCompiles": 40,
    "sun.gc.collector.0.invocations": 5,
    "sun.gc.collector.1.invocations": 1,
    "sun.gc.generation.0.capacity": 1 << 20,
    "sun.gc.generation.1.capacity": 3 << 20,
    "sun.gc.generation.0.space.0.capacity": 1 << 19,
}
RELEASE = "java.property.java.vm.specification.version"


def perf_file(numbers: dict[str, int] = NUMBERS, release: str = "21", *, accessible: int = 1) -> bytes:
    """A file as HotSpot writes it: a prologue, and an entry for every counter with its name and value."""
    entries: list[bytes] = []
    values: dict[str, int | str] = {**numbers, RELEASE: release}
    for name, value in values.items():
        head = 20
        text = name.encode() + b"\0"
        at = -(-(head + len(text)) // 8) * 8
        raw = struct.pack("<q", value) if isinstance(value, int) else value.encode() + b"\0"
        kind, size = ("J", 0) if isinstance(value, int) else ("B", len(raw))
        whole = struct.pack("<iiibBBBi", -(-(at + len(raw)) // 8) * 8, head, size, ord(kind), 0, 1, 1, at) + text
        entries.append((whole.ljust(at, b"\0") + raw).ljust(-(-(at + len(raw)) // 8) * 8, b"\0"))
    body = b"".join(entries)
    prologue = struct.pack("<IBBBBiiqii", 0xC0C0FECA, 1, 2, 0, accessible, 32 + len(body), 0, 0, 32, len(entries))
    return prologue + body


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def a_jvm(folder: Path, *words: str, pid: int = 12, inner: int = 1, content: bytes = b"") -> None:
    write(
        folder,
        {
            f"{pid}/status": f"Name:\tjava\nNSpid:\t{pid}\t{inner}\n".encode(),
            f"{pid}/cmdline": "\0".join(("java", *words)).encode(),
            f"{pid}/root/tmp/hsperfdata_root/{inner}": content or perf_file(),
        },
    )
