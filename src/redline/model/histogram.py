"""HdrHistograms in nanoseconds: one range, one precision, everywhere; merging is adding counts.

Source: http://hdrhistogram.org, the V2 compressed encoding that every HdrHistogram library reads.
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

LOWEST_NS = 1
HIGHEST_NS = 3_600_000_000_000
DIGITS = 3


class Histogram:
    """A distribution of durations in nanoseconds, from 1 ns to one hour, to three significant digits.

    In JSON it is its V2 compressed base64 text. Treat it as a value: `merged` makes a new one.
    """

    __slots__ = ("_hdr",)

    def __init__(self, hdr: HdrHistogram | None = None) -> None:
        self._hdr = hdr if hdr is not None else HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)

    @classmethod
    def of(cls, values_ns: Iterable[float]) -> Self:
        """The histogram of these durations; what lies past the range saturates, and is counted."""
        histogram = cls()
        for value in values_ns:
            histogram._hdr.record_value(min(max(int(value), LOWEST_NS), HIGHEST_NS))
        return histogram

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read V2 compressed base64. Raises ValueError on anything else."""
        histogram = cls()
        try:
            histogram._hdr.decode_and_add(text)
        except Exception as error:
            raise ValueError(f"not a V2 compressed base64 HdrHistogram: {error}") from error
        return histogram

    @classmethod
    def merged(cls, parts: Iterable["Histogram"]) -> Self:
        """The sum of the parts' counts: associative, commutative, and it loses nothing."""
        total = cls()
        for part in parts:
            total._hdr.add(part._hdr)  # noqa: SLF001 - of our own class
        return total

    def encode(self) -> str:
        """V2 compressed base64."""
        encoded: bytes = self._hdr.encode()
        return encoded.decode("ascii")

    @property
    def count(self) -> int:
        """How many durations were recorded."""
        return int(self._hdr.get_total_count())

    @property
    def max_ns(self) -> int:
        """The largest recorded duration; 0 when there is none."""
        return int(self._hdr.get_max_value()) if self.count else 0

    @property
    def mean_ns(self) -> float:
        """The mean, to the histogram's precision; 0 when nothing was recorded."""
        return float(self._hdr.get_mean_value()) if self.count else 0.0

    def quantile_ns(self, q: float) -> int:
        """The duration that a share `q` (0 to 1) of the recorded ones does not exceed; 0 when there is none."""
        return int(self._hdr.get_value_at_percentile(q * 100.0)) if self.count else 0

    def buckets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The non-empty buckets: highest equivalent value in ns, ascending, and count, of equal length."""
        values: list[int] = []
        counts: list[int] = []
        for item in self._hdr.get_recorded_iterator():
            values.append(item.value_iterated_to)
            counts.append(item.count_at_value_iterated_to)
        return np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        ours, theirs = self.buckets(), other.buckets()
        return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        return f"Histogram(n={self.count}, p50={self.quantile_ns(0.5)} ns, max={self.max_ns} ns)"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        from_text = core_schema.no_info_after_validator_function(cls.decode, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda histogram: histogram.encode(), return_schema=core_schema.str_schema(), when_used="json"
            ),
        )
