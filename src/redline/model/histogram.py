"""HdrHistograms in nanoseconds, all of the same range and precision; merging adds counts.

Source: http://hdrhistogram.org, the V2 compressed encoding that every HdrHistogram library reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import core_schema

from redline.lazily import LateModule
from redline.model import hdr
from redline.model.hdr import DIGITS, HIGHEST_NS, LOWEST_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from pydantic import GetCoreSchemaHandler

    from redline.model.hdr import Ints

    Filled = tuple[Ints, Ints]
    """The non-empty slots, ascending, and their counts."""
else:
    np = LateModule("numpy")

__all__ = ["DIGITS", "HIGHEST_NS", "LOWEST_NS", "Histogram", "HistogramTable"]

_AT_ONCE = 20
"""Histograms that are decoded in one pass: the arrays of more do not fit into the caches of a core."""


@cache
def _nothing() -> Filled:
    """No slots, and no counts."""
    none = np.empty(0, dtype=np.int64)
    return none, none


class Histogram:
    """A distribution of durations, from 1 ns to an hour, to three significant digits. A value: `merged` makes another.

    In JSON it is its V2 compressed base64 text, which is decoded only when needed. `decode_all` is faster for many.
    """

    __slots__ = ("_count", "_known", "_payload")

    def __init__(self, known: Filled | None = None, payload: bytes | None = None) -> None:
        self._known = known
        self._payload = payload
        self._count: int | None = None

    @classmethod
    def of(cls, values_ns: Iterable[float]) -> Self:
        """The histogram of these durations; durations past the range saturate, and are counted."""
        listed = values_ns if isinstance(values_ns, np.ndarray | Sequence) else list(values_ns)
        values = np.asarray(listed, dtype=np.float64)
        unique = np.unique_counts(hdr.slots_of(np.clip(values, LOWEST_NS, HIGHEST_NS).astype(np.int64)))
        return cls((unique.values, unique.counts))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read V2 compressed base64. Raises ValueError on anything else."""
        slots, counts, _ = hdr.read([hdr.unpack(text)])
        return cls((slots, counts))

    @classmethod
    def _decode_later(cls, text: str) -> Self:
        """As `decode`, but checks only encoding, header and length."""
        return cls(None, hdr.unpack(text))

    @staticmethod
    def decode_all(parts: Iterable[Histogram]) -> None:
        """Decode those histograms that are not decoded yet, many in one pass."""
        packed = [part for part in parts if part._known is None and part._payload is not None]  # noqa: SLF001 - of our own class
        for first in range(0, len(packed), _AT_ONCE):
            some = packed[first : first + _AT_ONCE]
            slots, counts, ends = hdr.read([part._payload or b"" for part in some])  # noqa: SLF001
            for part, (start, end) in zip(some, pairwise(ends.tolist()), strict=True):
                part._known = slots[start:end], counts[start:end]  # noqa: SLF001

    def compress(self) -> None:
        """Forget decoded slots, if the encoded text is kept; they are decoded again when needed."""
        if self._payload is not None:
            self._known = None

    def pack(self) -> None:
        """Keep the encoded text alone: a tenth of the memory. The slots are decoded again when needed."""
        if self._payload is None:
            self._payload = hdr.write(*self._filled())
        self._known = None

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Self:
        """The sum of the parts' counts: associative, commutative and lossless."""
        given = list(parts)
        return cls(given[0]._filled() if len(given) == 1 else HistogramTable(given).summed())  # noqa: SLF001

    def _filled(self) -> Filled:
        """The non-empty slots, ascending, and their counts."""
        if self._known is None:
            self.decode_all((self,))
        return self._known or _nothing()

    def encode(self) -> str:
        """V2 compressed base64."""
        if self._payload is None:
            self._payload = hdr.write(*self._filled())
        return hdr.pack(self._payload)

    @property
    def count(self) -> int:
        """The number of recorded durations."""
        if self._count is None:
            self._count = int(self._filled()[1].sum())
        return self._count

    def know_count(self, count: int) -> None:
        """Take over the number of its durations, which then needs no decoding."""
        self._count = count

    @property
    def max_ns(self) -> int:
        """The largest recorded duration; 0 when there is none."""
        slots, _ = self._filled()
        return int(hdr.highest_of(slots[-1:])[0]) if len(slots) else 0

    @property
    def mean_ns(self) -> float:
        """The mean, to the histogram's precision; 0 when nothing was recorded."""
        middles, counts = self._middles()
        return _mean(middles, counts) if len(middles) else 0.0

    @property
    def stdev_ns(self) -> float:
        """The standard deviation of all durations, to the histogram's precision; 0 when nothing was recorded."""
        middles, counts = self._middles()
        return _mean((middles - self.mean_ns) ** 2, counts) ** 0.5 if len(middles) else 0.0

    def share_within(self, deviations: float) -> float:
        """The share of durations that are at most so many standard deviations from the mean; 0 without durations."""
        middles, counts = self._middles()
        near = np.abs(middles - self.mean_ns) <= deviations * self.stdev_ns
        return float(counts[near].sum() / counts.sum()) if len(middles) else 0.0

    def _middles(self) -> tuple[NDArray[np.float64], Ints]:
        """The middles of non-empty slots, and their counts."""
        slots, counts = self._filled()
        return (hdr.lowest_of(slots) + hdr.highest_of(slots)) / 2.0, counts

    def quantile_ns(self, q: float) -> int:
        """The duration that a share `q` (0 to 1) of all durations does not exceed; 0 without durations."""
        return self.quantiles_ns((q,))[0]

    def quantiles_ns(self, qs: Sequence[float]) -> tuple[int, ...]:
        """Quantiles in nanoseconds for many shares at once."""
        slots, counts = self._filled()
        if not len(slots):
            return (0,) * len(qs)
        cumulative = np.cumsum(counts)
        at_ranks = slots[np.searchsorted(cumulative, hdr.ranks(np.asarray(qs), cumulative[-1]))]
        return tuple(int(ns) for ns in hdr.highest_of(at_ranks))

    def buckets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The non-empty buckets: highest equivalent value in ns, ascending, and count, of equal length."""
        slots, counts = self._filled()
        return hdr.highest_of(slots), counts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._filled(), other._filled(), strict=True))

    def __hash__(self) -> int:
        slots, counts = self._filled()
        return hash((slots.tobytes(), counts.tobytes()))

    def __repr__(self) -> str:
        return f"Histogram(n={self.count}, p50={self.quantile_ns(0.5)} ns, max={self.max_ns} ns)"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        from_text = core_schema.no_info_after_validator_function(cls._decode_later, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda histogram: histogram.encode(), return_schema=core_schema.str_schema(), when_used="json"
            ),
        )


def _mean(values: NDArray[np.float64], counts: Ints) -> float:
    """The mean of values of which there are so many: `np.average`, which takes twice as long for few."""
    return float(np.add.reduce(values * counts) / counts.sum(dtype=np.float64))


class HistogramTable:
    """Several histograms, decoded in one pass, for vectorized statistics."""

    __slots__ = ("_cumulative", "_ends", "_keys", "_slots")

    def __init__(self, parts: Sequence[Histogram]) -> None:
        Histogram.decode_all(parts)
        filled = [part._filled() for part in parts] or [_nothing()]  # noqa: SLF001 - of our own module
        self._slots, counts = map(np.concatenate, zip(*filled, strict=True))
        self._ends: Ints = np.array([0, *accumulate([len(slots) for slots, _ in filled[: len(parts)]])])
        self._cumulative: Ints = np.zeros(len(counts) + 1, dtype=np.int64)
        counts.cumsum(out=self._cumulative[1:])
        self._keys: Ints | None = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    def filled(self) -> Iterator[Filled]:
        """The non-empty slots of every histogram, ascending, and their counts."""
        counts = np.diff(self._cumulative)
        for start, end in pairwise(self._ends.tolist()):
            yield self._slots[start:end], counts[start:end]

    @property
    def counts(self) -> Ints:
        """The number of durations per histogram."""
        until = self._cumulative[self._ends]
        return until[1:] - until[:-1]

    @property
    def max_ns(self) -> Ints:
        """The largest duration per histogram; 0 if empty."""
        return self.quantiles_ns((1.0,))[:, 0]

    def quantiles_ns(self, qs: Sequence[float]) -> Ints:
        """Quantiles in nanoseconds, a row per histogram and a column per share; 0 for an empty histogram."""
        counts = self.counts[:, None]
        quantiles = np.zeros((len(self), len(qs)), dtype=np.int64)
        filled = np.flatnonzero(counts)
        before = self._cumulative[self._ends[:-1]][filled, None]
        ranks = before + hdr.ranks(np.asarray(qs), counts[filled].astype(np.float64))
        quantiles[filled] = hdr.highest_of(self._slots[np.searchsorted(self._cumulative, ranks) - 1])
        return quantiles

    def aligned(self) -> tuple[Ints, Ints]:
        """Non-empty slots of any histogram, ascending, and the counts: shape (histograms, slots)."""
        if not len(self._slots):
            return _nothing()[0], np.zeros((len(self), 0), dtype=np.int64)
        first = self._slots.min()
        at = self._slots - first
        is_filled = np.zeros(int(at.max()) + 1, dtype=np.bool_)
        is_filled[at] = True
        slots = np.flatnonzero(is_filled)
        column = np.empty(len(is_filled), dtype=np.int64)
        column[slots] = np.arange(len(slots))
        counts = np.zeros((len(self), len(slots)), dtype=np.int64)
        counts[np.repeat(np.arange(len(self)), np.diff(self._ends)), column[at]] = np.diff(self._cumulative)
        return slots + first, counts

    def summed(self) -> tuple[Ints, Ints]:
        """Non-empty slots of any histogram, ascending, and the sums of their counts."""
        if not len(self._slots):
            return _nothing()
        first = self._slots.min()
        at = self._slots - first
        total = np.zeros(int(at.max()) + 1, dtype=np.int64)
        np.add.at(total, at, np.diff(self._cumulative))
        slots = np.flatnonzero(total)
        return slots + first, total[slots]

    def counts_up_to(self, ns: float) -> Ints:
        """Durations per histogram that do not exceed the slot of `ns`."""
        result: Ints = self.counts_up_to_each((ns,))[0]
        return result

    def counts_up_to_each(self, ns: Sequence[float]) -> Ints:
        """The same for many times: a row per time and a column per histogram."""
        slots = hdr.slots_of(np.clip(np.asarray(ns, dtype=np.float64), LOWEST_NS, HIGHEST_NS).astype(np.int64))
        first = np.arange(len(self)) * hdr.SLOTS
        if self._keys is None:  # slots that ascend over all histograms
            self._keys = self._slots + np.repeat(first, np.diff(self._ends))
        past = np.searchsorted(self._keys, first + slots[:, np.newaxis], side="right")
        result: Ints = self._cumulative[past] - self._cumulative[self._ends[:-1]]
        return result
