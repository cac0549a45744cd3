"""The slots of an HdrHistogram and its V2 compressed encoding, in numpy: a thousand times the speed of a loop.

Source: http://hdrhistogram.org; the V2 encoding is that of `org.HdrHistogram.AbstractHistogram.encodeIntoByteBuffer`
and `ZigZagEncoding` (LEB128). The tests hold it to the library `hdrhistogram`, both ways.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING

from redline.lazily import LateModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
else:
    np = LateModule("numpy")  # what begins a load needs none

LOWEST_NS = 1
HIGHEST_NS = 3_600_000_000_000
DIGITS = 3

_HALF_BITS = 10  # 2 * 10**DIGITS values of 1 ns: 2**11 sub-buckets, of which a doubling has half
HALF = 1 << _HALF_BITS
BUCKETS = HIGHEST_NS.bit_length() - _HALF_BITS
SLOTS = (BUCKETS + 1) * HALF
PRECISION = 1.0 / HALF
"""The relative width of a slot is at most this, from 2048 ns up; below, slots are 1 ns wide."""

_COMPRESSED_COOKIE = 0x1C849314
_PAYLOAD_COOKIE = 0x1C849313
_OUTER = struct.Struct(">II")
_INNER = struct.Struct(">IIIIQQd")
_MOST_BYTES = _INNER.size + 9 * SLOTS
_GROUP = 0x7F
_MORE = 0x80


def slots_of(values_ns: Ints) -> Ints:
    """Slots of durations, all of which must lie in the range."""
    exponents = np.frexp((values_ns | (2 * HALF - 1)).astype(np.float64))[1].astype(np.int64)
    buckets = exponents - (_HALF_BITS + 1)
    result: Ints = (buckets << _HALF_BITS) + (values_ns >> buckets)
    return result


def lowest_of(slots: Ints) -> Ints:
    """The smallest durations in ns that fall into slots."""
    result: Ints = _bounds()[0][slots]
    return result


def highest_of(slots: Ints) -> Ints:
    """The largest durations in ns that fall into slots."""
    result: Ints = _bounds()[1][slots]
    return result


@cache
def _bounds() -> tuple[Ints, Ints]:
    """The smallest and the largest durations of every slot."""
    slots = np.arange(SLOTS)
    buckets = np.maximum((slots >> _HALF_BITS) - 1, 0)
    lowest = (slots - (buckets << _HALF_BITS)) << buckets
    return lowest, lowest + (np.int64(1) << buckets) - 1


def ranks(qs: NDArray[np.float64], total: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The rank (1 to `total`) of the value that a share `q` does not exceed: q * total, rounded up."""
    # nextafter keeps 0.07 * 100 = 7.000000000000001 from becoming the eighth.
    return np.minimum(np.maximum(np.ceil(np.nextafter(qs * total, 0.0)), 1.0), total)


def unpack(text: str) -> bytes:
    """The compressed payload of an encoded histogram, after cheap checks. Raises ValueError."""
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
        cookie, length = _OUTER.unpack_from(raw)
    except (ValueError, struct.error) as error:
        raise ValueError(f"not a V2 compressed base64 HdrHistogram: {error}") from None
    if cookie != _COMPRESSED_COOKIE or length != len(raw) - _OUTER.size:
        raise ValueError("not a V2 compressed base64 HdrHistogram: its header is wrong or it is cut short")
    return raw[_OUTER.size :]


def read(payloads: Sequence[bytes]) -> tuple[Ints, Ints, Ints]:
    """Histograms from their compressed payloads, decoded in one pass. Raises ValueError.

    Returns non-empty slots, their counts, and ends: `slots[ends[i]:ends[i + 1]]` are those of histogram i, ascending.
    """
    streams = [_stream(payload) for payload in payloads]
    data = np.frombuffer(b"".join(streams), dtype=np.uint8)
    byte_ends = np.cumsum([0, *map(len, streams)])
    if any(stream and stream[-1] >= _MORE for stream in streams):
        raise ValueError("not a V2 compressed base64 HdrHistogram: its counts are wrong")
    more = np.flatnonzero(data >= _MORE)  # bytes after which a number goes on
    numbers = _signed(data, more)
    if len(numbers) and int(numbers.min()) < -SLOTS:
        raise ValueError("not a V2 compressed base64 HdrHistogram: its slots lie past the range")
    number_ends = byte_ends - np.searchsorted(more, byte_ends)
    after = np.zeros(len(numbers) + 1, dtype=np.int64)
    steps = np.negative(numbers, out=after[1:])  # a run of empty slots is its negative length
    np.cumsum(np.maximum(steps, 1, out=steps), out=steps)
    filled = np.flatnonzero(numbers > 0)
    ends = np.searchsorted(filled, number_ends)
    # Positive numbers advance by one slot, and the slots of a histogram count from its own start.
    slots = after[filled]
    slots -= np.repeat(after[number_ends[:-1]], ends[1:] - ends[:-1])
    if len(slots) and int(slots.max()) >= SLOTS:
        raise ValueError("not a V2 compressed base64 HdrHistogram: its slots lie past the range")
    return slots, numbers[filled], ends


def _stream(payload: bytes) -> bytes:
    """The ZigZag LEB128 numbers of a compressed payload."""
    unzip = zlib.decompressobj()
    try:
        data = unzip.decompress(payload, _MOST_BYTES)
        cookie, length, offset, digits, lowest, _highest, ratio = _INNER.unpack_from(data)
    except (zlib.error, struct.error) as error:
        raise ValueError(f"not a V2 compressed base64 HdrHistogram: {error}") from None
    if not unzip.eof or cookie != _PAYLOAD_COOKIE or length != len(data) - _INNER.size:
        raise ValueError("not a V2 compressed base64 HdrHistogram: its payload is wrong or it is cut short")
    if (lowest, digits, offset, ratio) != (LOWEST_NS, DIGITS, 0, 1.0):
        raise ValueError(f"a histogram of another range: from {lowest} with {digits} digits, not from 1 ns with 3")
    return data[_INNER.size :]


def pack(payload: bytes) -> str:
    """The V2 compressed base64 text of a compressed payload."""
    return binascii.b2a_base64(_OUTER.pack(_COMPRESSED_COOKIE, len(payload)) + payload, newline=False).decode("ascii")


def write(slots: Ints, counts: Ints) -> bytes:
    """The compressed payload of these non-empty, ascending slots."""
    gaps = np.diff(slots, prepend=-1) - 1
    numbers = np.empty(2 * len(slots), dtype=np.int64)
    numbers[0::2] = np.where(gaps == 1, 0, -gaps)  # a run of n empty slots is -n, but a single one is a count of 0
    numbers[1::2] = counts
    kept = np.ones(len(numbers), dtype=bool)
    kept[0::2] = gaps > 0
    body = _leb128(numbers[kept])
    inner = _INNER.pack(_PAYLOAD_COOKIE, len(body), 0, DIGITS, LOWEST_NS, HIGHEST_NS, 1.0)
    return zlib.compress(inner + body)


def _signed(data: NDArray[np.uint8], more: Ints) -> Ints:
    """The numbers of a ZigZag LEB128 stream, given the bytes after which a number goes on. Raises ValueError."""
    # Most numbers have a single byte, so all are first read as single bytes, and longer numbers again.
    ones = data[data < _MORE]
    numbers = ((ones >> 1) ^ -(ones & 1)).view(np.int8).astype(np.int64)
    is_final = np.ones(len(more), dtype=np.bool_)  # of the `more` bytes of longer numbers
    np.not_equal(more[1:] - more[:-1], 1, out=is_final[:-1])
    final = np.flatnonzero(is_final)
    lengths = final + 2  # each begins after the one before it, and ends with a byte that is not of them
    lengths[1:] -= final[:-1] + 1
    # Nine groups only occur in counts of 2**55 and more, which no measurement reaches.
    longest = int(lengths.max(initial=1))
    if longest > 8:
        raise ValueError("not a V2 compressed base64 HdrHistogram: its counts are wrong")
    ends = more[final] + 1
    zigzag = data[ends].astype(np.int64)
    for back in range(1, longest):
        zigzag = np.where(lengths > back, zigzag << 7 | data[ends - back] & _GROUP, zigzag)
    numbers[more[final] - final] = (zigzag >> 1) ^ -(zigzag & 1)
    return numbers


def _leb128(numbers: Ints) -> bytes:
    zigzag = (numbers << 1) ^ (numbers >> 63)
    lengths = np.ones(len(zigzag), dtype=np.int64)
    for group in range(1, 8):
        lengths += zigzag >> (7 * group) > 0
    starts = np.cumsum(lengths) - lengths
    groups = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    parts = (np.repeat(zigzag, lengths) >> (7 * groups)) & _GROUP
    parts |= np.where(groups < np.repeat(lengths, lengths) - 1, _MORE, 0)
    return parts.astype(np.uint8).tobytes()
