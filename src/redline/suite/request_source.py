"""Read a file of requests: its beginning, its lines, or all of its text. Memory is bounded for any content."""

import gzip
import json
import re
import shlex
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NoReturn, cast

from redline.errors import Location, UsageError
from redline.lazily import dataclass
from redline.schema.json_text import real_number, whole_number
from redline.wording import part

HEAD_BYTES = 64 * 1024
MOST_TEXT_BYTES = 64 * 1024 * 1024
MOST_VALUES = 10_000_000
"""Values of JSON, which take some tens of bytes of memory; brackets and commas in its texts are counted too."""
MOST_LINE_BYTES = 1024 * 1024
_BLOCK_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OTHER_PACKERS = {
    b"BZh": ("bzip2", "bzcat"),
    b"\xfd7zXZ": ("xz", "xzcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
"""The first bytes of packed files, the format, and the command that writes what is in them."""
_CONSTANT = "NaN and Infinity are not JSON values"


@dataclass(frozen=True)
class Broken:
    """The error in a text that should be JSON, and its position."""

    why: str
    line: int
    column: int


class RequestSource:
    """A file that is read once, which may be a pipe; gzip is decompressed.

    `body` reads the files that it names, in its folder. Raises UsageError for UTF-16, and for other packed files.
    """

    def __init__(self, name: str, file: BinaryIO, body: Callable[[str], bytes]) -> None:
        self.name = name
        self.body = body
        first = _all_of(file, 2)
        joined = cast("BinaryIO", _Joined(first, file))
        self._file = cast("BinaryIO", gzip.GzipFile(fileobj=joined)) if first == _GZIP else joined
        self.head = self._read(lambda: _all_of(self._file, HEAD_BYTES)).removeprefix(_BOM)
        self._rest = self._file
        self._json: Any = None
        self._check_bytes()

    def lines(self) -> Iterator[tuple[int, str]]:
        r"""The lines with their numbers, from 1, without line ends, which are `\n`, `\r\n` or a bare `\r`.

        Raises UsageError for a line of more than 1 MiB. Bytes that are not UTF-8 become `\xHH`, as servers write them.
        """
        number, rest, block = 1, b"", self.head
        while block:
            content = rest + block
            end = max(content.rfind(b"\n"), content.rfind(b"\r", 0, -1)) + 1  # the last may be the half of a `\r\n`
            whole, rest = content[:end], content[end:]
            # Decoding a block at once takes a tenth of the time that its lines take.
            for line in lines_of(whole.decode(errors="backslashreplace")):
                yield number, line
                number += 1
            if len(rest) > MOST_LINE_BYTES:
                raise self.wrong("this line is longer than 1 MiB", "see whether this is the right file", number)
            block = self._read(lambda: self._rest.read(_BLOCK_BYTES))
        for line in lines_of(rest.decode(errors="backslashreplace")):
            yield number, line
            number += 1

    def text(self) -> str:
        """The whole text. Raises UsageError for more than 64 MiB, and for bytes that are not UTF-8."""
        rest = self._read(lambda: _all_of(self._rest, MOST_TEXT_BYTES + 1 - len(self.head)))
        content = self.head + rest
        if len(content) > MOST_TEXT_BYTES:
            hint = "export a part of it; a recording of a browser needs no contents of answers"
            raise UsageError(f"{self.name} is longer than 64 MiB", hint=hint)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise self.wrong("this is not UTF-8 text", "save the file as UTF-8", line) from None

    def json(self) -> Any:
        """The whole file as JSON, read once. Raises UsageError."""
        if self._json is None:
            text = self.text()
            if sum(map(text.count, "{[,")) > MOST_VALUES:
                raise self.wrong(f"this JSON has more than {MOST_VALUES:,} values", "export a part of it")
            self._json = read_json(text)
        if isinstance(self._json, Broken):
            broken = self._json
            raise self.wrong(f"this is not JSON: {broken.why}", "export it again", broken.line, broken.column)
        return self._json

    def check_body(self, name: str, line: int) -> None:
        """Read a file that a line names. Raises UsageError at that line."""
        try:
            self.body(name)
        except UsageError as error:
            raise self.wrong(error.message, error.hint, line) from None

    def wrong(
        self, message: str, hint: str, line: int | None = None, column: int | None = None, field: str | None = None
    ) -> UsageError:
        """The error at a position in the file."""
        return UsageError(message, hint=hint, place=Location(self.name, line, column, field))

    def timeless(self) -> UsageError:
        """The error of a file whose requests should be sent when they were."""
        return self.wrong(
            "this file does not say when its requests were sent", f"load it at a rate: {part('rate', 'RATE')}"
        )

    def _check_bytes(self) -> None:
        quoted = shlex.quote(self.name)
        if self.head.startswith(_UTF_16):
            raise self.wrong("this is UTF-16 text", f"save it as UTF-8: iconv -f UTF-16 -t UTF-8 {quoted} > utf8.txt")
        for first, (packed, command) in _OTHER_PACKERS.items():
            if self.head.startswith(first):
                raise self.wrong(f"this is packed by {packed}", f"unpack it: {command} {quoted} > unpacked.txt")

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (OSError, EOFError, zlib.error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UsageError(f"{self.name} cannot be read: {reason}", hint="see whether the file is whole") from None


def lines_of(text: str) -> list[str]:
    r"""The lines of a text that ends with a line, or with the file; they end with `\n`, `\r\n` or a bare `\r`."""
    lines = (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")
    return lines if lines[-1] else lines[:-1]


def read_json(text: str, of_pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON, or return `Broken`, also for numbers that are not finite and for excessive nesting.

    `of_pairs` makes the objects; it raises ValueError for those that are not wanted.
    """
    try:
        return json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=real_number,
            parse_int=whole_number,
            object_pairs_hook=of_pairs,
        )
    except json.JSONDecodeError as error:
        return Broken(error.msg[:1].lower() + error.msg[1:], error.lineno, error.colno)
    except RecursionError:
        return Broken("it is nested too deeply", 1, 1)
    except ValueError as error:  # a number with thousands of digits, or NaN or Infinity
        return Broken(_CONSTANT if str(error) == _CONSTANT else "a number is too long", 1, 1)


def _no_constant(_: str) -> NoReturn:
    raise ValueError(_CONSTANT)


def member(value: object, *path: str | int) -> Any:
    """The value at a path of plain data; None if there is none."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: object, *path: str | int) -> str:
    """The text at a path of plain data; empty if there is no text."""
    text = member(value, *path)
    return text if isinstance(text, str) else ""


def without_comments(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines that do not begin with `#`."""
    return ((number, line) for number, line in lines if not re.match(r"\s*#", line))


def _all_of(file: Any, count: int) -> bytes:
    """Read `count` bytes, or fewer at the end of the file. A single read of a pipe may return less."""
    pieces = list[bytes]()
    while count > 0 and (piece := file.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


class _Joined:
    """A stream of the given bytes, and then the rest of a file."""

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first = first
        self._at = 0
        self._rest = rest

    def read(self, count: int = -1) -> bytes:
        piece = self._first[self._at : None if count < 0 else self._at + count]
        self._at += len(piece)
        return piece or bytes(self._rest.read(count))
