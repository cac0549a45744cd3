"""Whether two built files differ by stamps alone: the folder, the commit, the time of a build, and hashes of them."""

import re
import struct
import zipfile
import zlib
from pathlib import Path

_MOST_BYTES = 256 << 20
"""A larger file takes more memory to compare than to say so is worth."""
_ELF, _ZIP, _LOADED = b"\x7fELF\x02\x01", b"PK\x03\x04", 1
_BUILD_ID = rb"(?s:\x04\0\0\0(?:\x14\0\0\0\x03\0\0\0GNU\0.{20}|.\0\0\0\x04\0\0\0Go\0\0[\w/+-]{8,200}))"
_TIME = rb"20\d\d-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?|(?<!\d)20\d{12}(?=-)"
_SHORT = 7


def stamps(files: tuple[Path, Path], roots: tuple[Path, Path], commits: tuple[str, str]) -> tuple[str, ...]:
    """Return by what two files differ if that does not change what they do; empty otherwise. Raises OSError.

    Of a program (ELF) what is loaded counts, so debug information does not; of an archive (zip, jar) the names and
    contents, in order. The rest has to be the same bytes at the same places.
    """
    if max(file.stat().st_size for file in files) > _MOST_BYTES:
        return ()
    try:
        ours, theirs = _parts(files[0]), _parts(files[1])
    except (struct.error, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        return ()
    if len(ours) != len(theirs):
        return ()
    kinds = [_kinds(*one) for one in zip(roots, commits, strict=True)]
    found = dict[str, None]()
    for first, second in zip(ours, theirs, strict=True):
        one, other = first, second
        for (name, own), (_, its) in zip(*kinds, strict=True):
            if one == other:
                break
            if own.findall(one) != its.findall(other):
                found[name] = None
            one, other = own.sub(_blank, one), its.sub(_blank, other)
        if one != other:
            return ()
    return tuple(found) or ("what is not loaded",)


def _parts(file: Path) -> list[bytes]:
    """The parts of a file that count. Raises OSError, struct.error, and what `zipfile` does."""
    content = file.read_bytes()
    if content.startswith(_ELF):
        return _loaded(content)
    if not content.startswith(_ZIP):
        return [content]
    with zipfile.ZipFile(file) as archive:
        inside = archive.infolist()
        if sum(one.file_size for one in inside) > _MOST_BYTES:
            raise zipfile.BadZipFile
        return [part for one in inside for part in (one.filename.encode(), archive.read(one))]


def _loaded(program: bytes) -> list[bytes]:
    """What is loaded of a 64-bit program, but the table of its sections, if it lies there. Raises struct.error."""
    content = bytearray(program)
    heads, sections = struct.unpack_from("<QQ", content, 0x20)
    head_size, count, section_size, section_count = struct.unpack_from("<4H", content, 0x36)
    for begin, size in ((0x28, 8), (sections, section_size * section_count)):
        content[begin : begin + size] = bytes(len(content[begin : begin + size]))
    segments = [struct.unpack_from("<IIQQQQQQ", content, heads + head_size * number) for number in range(count)]
    loaded = [(offset, size) for kind, _, offset, _, _, size, _, _ in segments if kind == _LOADED]
    where = b"".join(struct.pack("<8Q", *segment) for segment in segments)
    return [where, *(bytes(content[offset : offset + size]) for offset, size in loaded)]


def _kinds(root: Path, commit: str) -> list[tuple[str, re.Pattern[bytes]]]:
    """The stamps that a build in this folder, of this commit, can leave."""
    rest = commit[_SHORT:].encode()
    # As many digits of the commit as there are: `(?:8(?:9(?:a)?)?)?`.
    digits = b"".join(b"(?:%c" % digit for digit in rest) + b")?" * len(rest)
    patterns = {
        "the folder of the build": re.escape(str(root).encode()),
        "the commit": commit[:_SHORT].encode() + digits,
        "a time": _TIME,
        "a build ID": _BUILD_ID,
    }
    return [(name, re.compile(pattern)) for name, pattern in patterns.items()]


def _blank(found: re.Match[bytes]) -> bytes:
    return bytes(len(found[0]))
