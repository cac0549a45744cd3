"""What the probes of a search say against its answer: no sentence contradicts the table of probes. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redline.findings import RULES
from redline.model import Finding, Grade
from redline.model.limits import FAR_BELOW, LimitProbe
from redline.model.report import ObjectiveState
from redline.model.timeline import SearchedLoad
from redline.quantities import duration, paced
from redline.search.client import DISTURBANCES
from redline.search.evidence import SAME_RATE

_FEWEST = 2
"""The fewest probes on each side of a change: one may be an accident."""


@dataclass(frozen=True)
class Seen:
    """All probes of a search in their order, the findings about them by their index, and when its loads ran."""

    probes: Sequence[LimitProbe]
    findings: Sequence[Finding] = ()
    loads: Sequence[SearchedLoad] = ()

    def met_at(self, name: str) -> float | None:
        """The highest rate at which a probe met a set of objectives; None if none did."""
        return max((probe.rate_per_s for probe in self._with(name, "met")), default=None)

    def missed_at(self, name: str) -> float | None:
        """The lowest rate at which a probe missed a set of objectives; None if none did."""
        return min((probe.rate_per_s for probe in self._with(name, "missed")), default=None)

    def doubts(self, name: str, low: float | None, high: float | None) -> Iterator[str]:
        """Yield what speaks against `met up to low, missed from high on`, as clauses of a sentence."""
        changed = self._changed(name)
        yield from [changed] if changed else self._contrary(name, low, high)
        missed = self._with(name, "missed")
        if high is not None and len(missed) == 1:
            yield f"one probe alone missed it, at {_said(missed[0])}"
        yield from self._stood_still(missed, high)
        yield from self._disturbed()

    def _with(self, name: str, state: ObjectiveState) -> list[LimitProbe]:
        """The probes with this state of a set of objectives, in their order."""
        return [
            probe
            for probe in self.probes
            if any(verdict.name == name and verdict.state == state for verdict in probe.counts)
        ]

    def _contrary(self, name: str, low: float | None, high: float | None) -> Iterator[str]:
        """Yield the probes that met a set of objectives where it is said to be missed, and the other way round."""
        met, missed = self._with(name, "met"), self._with(name, "missed")
        least_met = 0.0 if low is None else low * SAME_RATE if high is None else high
        if above := [probe for probe in met if probe.rate_per_s >= least_met]:
            best = max(above, key=lambda probe: probe.rate_per_s)
            yield f"but {len(above)} of {len(self.probes)} probes met it, the highest at {_said(best)}"
        most = low if low is not None else max((probe.rate_per_s for probe in met), default=0.0)
        if below := [probe for probe in missed if probe.rate_per_s <= most or high is None]:
            worst = min(below, key=lambda probe: probe.rate_per_s)
            again = sum(worst.rate_per_s <= probe.rate_per_s <= SAME_RATE * worst.rate_per_s for probe in self.probes)
            stall = len(below) == again == 1 and worst.rate_per_s <= FAR_BELOW * most
            why = ": a stall, unless it repeats" if stall else ""
            yield f"but {len(below)} of {len(self.probes)} probes missed it, the lowest at {_said(worst)}{why}"

    def _stood_still(self, missed: Sequence[LimitProbe], high: float | None) -> Iterator[str]:
        """Yield in how many of the probes that say from where it is missed the server stood still, and what that means.

        What stops it may be its own, such as a collector, or the machine's.
        """
        deciding = [probe for probe in missed if high is not None and probe.rate_per_s <= SAME_RATE * high]
        if stood := [probe.stalled_ns for probe in deciding if probe.stalled_ns]:
            share = f"all {len(deciding)}" if len(stood) == len(deciding) else f"{len(stood)} of the {len(deciding)}"
            count = f"{share} probes" if len(deciding) > 1 else "the probe"
            yield f"it answered nothing for up to {duration(max(stood))} in {count} that missed it up to there"

    def _changed(self, name: str) -> str:
        """`it changed during the search: it met 4,000/s until 90 s, and missed 2,800/s from 95 s on`; else empty."""
        met, missed = self._with(name, "met"), self._with(name, "missed")
        if not met or not missed:
            return ""
        best, worst = (pick(of, key=_rate) for pick, of in ((max, met), (min, missed)))
        met = [probe for probe in met if FAR_BELOW * probe.rate_per_s >= worst.rate_per_s]
        missed = [probe for probe in missed if probe.rate_per_s <= FAR_BELOW * best.rate_per_s]
        if not met or len(missed) < _FEWEST:
            return ""
        ends, at = self._ends_s(), {id(probe): index for index, probe in enumerate(self.probes)}
        of_met, of_missed = ([at[id(probe)] for probe in probes] for probes in (met, missed))
        if max(of_met) < min(of_missed):
            first = f"it met {_said(best)} until {_when(ends, max(of_met))}"
            return f"its answers changed: {first}, and missed {_said(worst)} from {_when(ends, min(of_missed))} on"
        if max(of_missed) < min(of_met) and len(met) >= _FEWEST:
            first = f"it missed {_said(worst)} until {_when(ends, max(of_missed))}"
            return f"its answers changed: {first}, and met {_said(best)} from {_when(ends, min(of_met))} on"
        return ""

    def _ends_s(self) -> dict[int, float]:
        """When the probes ended, in seconds of load since the search began, by their index."""
        ends, now_s = dict[int, float](), 0.0
        for load in self.loads:
            now_s += load.ends_s
            if load.probe is not None:
                ends[load.probe] = now_s
        return ends

    def _disturbed(self) -> Iterator[str]:
        """Yield in how many probes other work or the host took time of the machine, and what that means."""
        found = {
            (finding.kind, finding.position)
            for finding in self.findings
            if finding.position is not None and finding.grade is not Grade.NOTE
            if "response times are too high" in RULES[finding.kind].biases or finding.kind in DISTURBANCES
        }
        if kinds := Counter(kind for kind, _ in found):
            counts = (f"{kind} in {count} of {len(self.probes)} probes" for kind, count in sorted(kinds.items()))
            yield f"disturbed ({', '.join(counts)}): by itself it may meet more"


def _rate(probe: LimitProbe) -> float:
    return probe.rate_per_s


def _when(ends_s: Mapping[int, float], probe: int) -> str:
    """`95 s`, of load since the search began; `probe 7` where that is not known."""
    return f"{ends_s[probe]:.0f} s" if probe in ends_s else f"probe {probe + 1}"


def _said(probe: LimitProbe) -> str:
    return paced(f"{probe.rate_per_s:,.0f}/s", probe.speed)
