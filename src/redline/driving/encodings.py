"""Decode the bodies of answers (RFC 9110, section 8.4): gzip and deflate by zlib, br and zstd by cramjam, an extra."""

import zlib
from collections.abc import Callable

from redline.errors import UsageError

MOST_DECODED = 256 << 20
"""The most bytes of a body once it is decoded by zlib."""
_ALSO = {"x-gzip": "gzip"}


class EncodingError(ValueError):
    """A body is not what its encoding says; the message says why."""


def codings_of(header: str) -> tuple[str, ...]:
    """The codings of a `Content-Encoding`, in the order in which they were applied, without `identity`."""
    named = (coding.strip().lower() for coding in header.split(","))
    return tuple(_ALSO.get(coding, coding) for coding in named if coding not in {"", "identity"})


def decoded(body: bytes, codings: tuple[str, ...]) -> bytes:
    """Decode a body. Raises EncodingError, and UsageError where a library is missing."""
    for coding in reversed(codings):
        decode = _DECODERS.get(coding)
        if decode is None:
            raise EncodingError(f"`{coding}` is not known here")
        body = decode(body)
    return body


def _gzip(body: bytes) -> bytes:
    parts, left = b"", body
    while left:  # a body may have several members (RFC 1952, section 2.2)
        part, left = _inflated(left, zlib.MAX_WBITS | 16)
        parts += part
    return parts


def _deflate(body: bytes) -> bytes:
    try:
        whole, left = _inflated(body, zlib.MAX_WBITS)
    except EncodingError:  # some servers leave out the frame of zlib
        whole, left = _inflated(body, -zlib.MAX_WBITS)
    if left:
        raise EncodingError(f"{len(left)} bytes stand behind its end")
    return whole


def _inflated(body: bytes, window: int) -> tuple[bytes, bytes]:
    """The decoded bytes, and those behind their end."""
    engine = zlib.decompressobj(window)
    try:
        whole = engine.decompress(body, MOST_DECODED)
    except zlib.error as error:
        raise EncodingError(str(error).rpartition(": ")[2]) from None
    if engine.unconsumed_tail:
        raise EncodingError(f"it has more than {MOST_DECODED >> 20} MiB once it is decoded")
    if not engine.eof:
        raise EncodingError("it ends too early")
    return whole, engine.unused_data


def _by_cramjam(coding: str, module: str) -> Callable[[bytes], bytes]:
    def decode(body: bytes) -> bytes:
        try:
            import cramjam  # noqa: PLC0415 - an extra, which is needed for these alone
        except ImportError:
            hint = "install the package `cramjam`: uv tool install … --with cramjam; or leave out that encoding"
            raise UsageError(
                f"answers in {coding} cannot be checked without the extra `encodings`", hint=hint
            ) from None
        try:
            return bytes(getattr(cramjam, module).decompress(body))
        except cramjam.DecompressionError as error:
            raise EncodingError(str(error)) from None

    return decode


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _by_cramjam("br", "brotli"),
    "zstd": _by_cramjam("zstd", "zstd"),
}
