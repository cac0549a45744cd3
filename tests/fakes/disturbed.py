"""A server on a machine that is not its own: it stands still, shares its core, or loses capacity on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from redline.extras.selftest.truth import Service
from redline.model import Histogram
from redline.search import Evidence, Proposal, Search
from redline.search.evidence import Floats, RequestSeen
from tests.fakes.queues import evidence

LONG_S = 3600.0
_BETWEEN_S = 0.2


@dataclass
class Disturbed:
    """One worker whose speed changes over the time of a search.

    `stalls` are (moment, length) in seconds, `busy` (moment, length, speed) of neighbours, during which the client is
    late too. From `falls_at_s` on, the capacity is `falls_to` of what it was.
    """

    service: Service
    seconds: float
    stalls: Sequence[tuple[float, float]] = ()
    busy: Sequence[tuple[float, float, float]] = ()
    falls_at_s: float = LONG_S
    falls_to: float = 1.0
    base_s: float = 0.0
    now_s: float = field(default=0.0, init=False)

    def speeds(self, at_s: Floats) -> Floats:
        """The shares of its speed that it has at moments."""
        speeds = np.ones(len(at_s))
        for start, lasts, left in self.busy:
            during = (start <= at_s) & (at_s < start + lasts)
            speeds[during] = np.minimum(speeds[during], left)
        speeds[at_s >= self.falls_at_s] *= self.falls_to
        for start, lasts in self.stalls:
            speeds[(start <= at_s) & (at_s < start + lasts)] = 0.0
        return speeds

    def probe(self, rate_per_s: float, rng: Generator, *, whole: bool = False) -> Evidence:
        """A probe that begins now; time goes on by its length, or until it was ended."""
        warmup_s = min(1.0, 0.2 * self.seconds)
        lasts_s = warmup_s + self.seconds
        due = np.sort(rng.random(rng.poisson(rate_per_s * lasts_s))) * lasts_s
        took = self._took(due, self.service.draw(rng, (len(due),)), lasts_s)
        slice_s = max(0.02, self.seconds / 50)
        seen = evidence(rate_per_s, due, took, self.seconds, slice_s, warmup_s, whole=whole)
        return self._ended(seen, warmup_s)

    def replayed(self, times: Floats, rate_per_s: float, rng: Generator) -> Evidence:
        """A probe that sends a recording so fast that its mean is this rate."""
        recorded_s = float(times[-1]) * len(times) / (len(times) - 1)
        seconds = len(times) / rate_per_s
        due = times * seconds / recorded_s
        took = self._took(due, self.service.draw(rng, (len(due),)), seconds)
        seen = evidence(rate_per_s, due, took, seconds, seconds / 50, whole=True)
        return self._ended(replace(seen, speed=recorded_s / seconds), 0.0)

    def probe_by_request(self, rate_per_s: float, rng: Generator) -> Evidence:
        """A probe of a mix whose every tenth request takes five times as long, counted by request."""
        warmup_s = min(1.0, 0.2 * self.seconds)
        lasts_s = warmup_s + self.seconds
        due = np.sort(rng.random(rng.poisson(rate_per_s * lasts_s))) * lasts_s
        long = rng.random(len(due)) < 0.1
        took = self._took(due, self.service.draw(rng, (len(due),)) * np.where(long, 5.0, 1.0), lasts_s)
        slice_s = max(0.02, self.seconds / 50)
        seen = evidence(rate_per_s, due, took, self.seconds, slice_s, warmup_s, whole=True)
        measured = due >= warmup_s
        of_each = {"items": took[measured & ~long], "checkout": took[measured & long]}
        requests = {
            name: RequestSeen(len(times), len(times), 0, Histogram.of(times * 1e9)) for name, times in of_each.items()
        }
        return self._ended(replace(seen, requests=requests), warmup_s)

    def probe_with_timeouts(self, rate_per_s: float, rng: Generator, timeout_s: float) -> Evidence:
        """A probe in which what takes longer than the timeout is an error, at its age."""
        warmup_s = min(1.0, 0.2 * self.seconds)
        lasts_s = warmup_s + self.seconds
        due = np.sort(rng.random(rng.poisson(rate_per_s * lasts_s))) * lasts_s
        took = self._took(due, self.service.draw(rng, (len(due),)), lasts_s)
        lost = took > timeout_s
        slice_s = max(0.02, self.seconds / 50)
        seen = evidence(rate_per_s, due, np.minimum(took, timeout_s), self.seconds, slice_s, warmup_s, whole=True)
        ends = np.minimum((due[lost] + timeout_s - warmup_s) / slice_s, len(seen.timed)).astype(int)
        errors = np.bincount(ends[(due[lost] >= warmup_s) & (ends >= 0)], minlength=len(seen.slices))
        slices = tuple(
            replace(slice_, answered=max(slice_.answered - int(failed), 0), errors=int(failed))
            for slice_, failed in zip(seen.slices, errors, strict=True)
        )
        return self._ended(replace(seen, slices=slices), warmup_s)

    def _took(self, due: Floats, needs: Floats, lasts_s: float) -> Floats:
        """How long requests took that fall due so long after now, and need so much of its full speed."""
        moments, work = self._work(self.now_s, lasts_s)
        arrives, done = np.interp(due, moments, work), np.cumsum(needs)
        ends = done + np.maximum.accumulate(arrives - (done - needs)) if len(due) else done
        # The last moment at which this much was done: a server that stands still ends nothing.
        at = np.searchsorted(work, ends, side="left")
        at = np.clip(at, 1, len(work) - 1)
        gained = np.maximum(work[at] - work[at - 1], 1e-12)
        known = moments[at - 1] + (ends - work[at - 1]) / gained * (moments[at] - moments[at - 1])
        return np.asarray(known - due + self.base_s)

    def _ended(self, seen: Evidence, warmup_s: float) -> Evidence:
        begin, self.now_s = self.now_s, self.now_s + warmup_s + seen.seconds + _BETWEEN_S
        late = any(start < self.now_s and begin < start + lasts for start, lasts, _ in self.busy)
        return replace(seen, client="the engine was late by 12.0 ms", lengthens=True, hopeless=False) if late else seen

    def _work(self, begin: float, lasts_s: float) -> tuple[Floats, Floats]:
        """How much it has worked by which moment, in seconds of its full speed; in the end it works as at the end."""
        moments = np.arange(0, lasts_s + 60, 0.005)
        worked = np.cumsum(self.speeds(begin + moments)[:-1]) * 0.005
        return moments, np.concatenate([[0.0], worked])


def searched(search: Search, server: Disturbed, seed: int) -> object:
    """How a search on this server ends."""
    rng = np.random.default_rng([seed, 3])
    while isinstance(step := search.next(), Proposal):
        search.add(server.probe(step.rate_per_s, rng, whole=step.whole))
    return step
