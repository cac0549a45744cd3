"""What the probes of a search say against its answer: no sentence contradicts the table of probes. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redline.findings import RULES
from redline.limits.changes import change_text, limit_change
from redline.model import Finding, Grade
from redline.model.judged import ObjectiveState
from redline.model.limits import FAR_BELOW, LimitChange, LimitProbe, tried_text
from redline.quantities import duration
from redline.search.change import ServerChange
from redline.search.client import DISTURBANCES
from redline.search.evidence import SAME_RATE


@dataclass(frozen=True)
class Seen:
    """All probes of a search in their order, and the findings about them by their index."""

    probes: Sequence[LimitProbe]
    findings: Sequence[Finding] = ()

    def met_at(self, name: str) -> float | None:
        """The highest rate at which a probe met a set of objectives; None if none did."""
        return max((probe.tried for probe in self._with(name, "met")), default=None)

    def missed_at(self, name: str) -> float | None:
        """The lowest rate at which a probe missed a set of objectives; None if none did."""
        return min((probe.tried for probe in self._with(name, "missed")), default=None)

    def changed(self, name: str, change: ServerChange | None) -> LimitChange | None:
        """How the server changed while it was searched; None if nothing says that it did."""
        return limit_change(self.probes, name, change)

    def doubts(
        self,
        name: str,
        low: float | None,
        high: float | None,
        changed: LimitChange | None = None,
        *,
        modelled: bool = True,
    ) -> Iterator[str]:
        """Yield what speaks against `met up to low, missed from high on`, as clauses of a sentence.

        `modelled`: the ends are those of a model, and not of probes.
        """
        if changed is not None:
            yield change_text(changed)
        if changed is None or not changed.answers:
            yield from self._contrary(name, low, high)
        missed = self._with(name, "missed")
        if high is not None and len(missed) == 1:
            yield f"one probe alone missed it, at {missed[0].said}"
        if high is not None and missed and not modelled and (together := self._together(name, high)):
            at = tried_text(high, by_users=missed[0].users is not None)
            alone = f"no probe alone missed it at {at}: {together} together did"
            yield f"{alone}; the lowest that did is at {_lowest(missed)}"
        yield from self._stood_still(missed, high)
        yield from self._disturbed()

    def _together(self, name: str, high: float) -> int:
        """The probes at this rate, if none of them missed a set of objectives by itself; else 0."""
        there = [probe for probe in self.probes if high / SAME_RATE <= probe.tried <= high * SAME_RATE]
        states = [verdict.state for probe in there for verdict in probe.counts if verdict.name == name]
        return 0 if "missed" in states else len(there)

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
        if above := [probe for probe in met if probe.tried >= least_met]:
            best = max(above, key=lambda probe: probe.tried)
            yield f"but {len(above)} of {len(self.probes)} probes met it, the highest at {best.said}"
        most = low if low is not None else max((probe.tried for probe in met), default=0.0)
        if below := [probe for probe in missed if probe.tried <= most or high is None]:
            worst = min(below, key=lambda probe: probe.tried)
            again = sum(worst.tried <= probe.tried <= SAME_RATE * worst.tried for probe in self.probes)
            stall = len(below) == again == 1 and worst.tried <= FAR_BELOW * most
            why = ": a stall, unless it repeats" if stall else ""
            yield f"but {len(below)} of {len(self.probes)} probes missed it, the lowest at {worst.said}{why}"

    def _stood_still(self, missed: Sequence[LimitProbe], high: float | None) -> Iterator[str]:
        """Yield in how many of the probes that say from where it is missed the server stood still, and what that means.

        What stops it may be its own, such as a collector, or the machine's.
        """
        deciding = [probe for probe in missed if high is not None and probe.tried <= SAME_RATE * high]
        if stood := [probe.stalled_ns for probe in deciding if probe.stalled_ns]:
            share = f"all {len(deciding)}" if len(stood) == len(deciding) else f"{len(stood)} of the {len(deciding)}"
            count = f"{share} probes" if len(deciding) > 1 else "the probe"
            yield f"it answered nothing for up to {duration(max(stood))} in {count} that missed it up to there"

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


def _lowest(missed: Sequence[LimitProbe]) -> str:
    return min(missed, key=lambda probe: probe.tried).said
