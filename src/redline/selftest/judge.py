"""Whether an answer is right, wrong, or not to be judged on a machine like this.

An error is *off* only when nothing that was measured in the same run explains it. The rules, in their order:

1. Chance and the server's own lateness are taken off the error first. What is left is held to the goal: within it is
   `ok`.
2. Where these two alone are more than half of the truth (of the length of a stop, within it) there is nothing to hold
   it to: too noisy to say.
3. An answer that is too *small* is never the machine's fault, because noise only adds; only a round trip that moved
   since it was measured may explain it.
4. An answer that is too large is too noisy to say where the machine explains what is beyond the goal: for a fifth of
   the time some process waited for a core; or it took time away for at least half as many requests as lie beyond the
   percentile, without those that the law itself holds; or the round trip's own tail, the wake-ups of a mere
   sleeper (as far as the engine was late by as much) and the spread of the case's own slices add up to it.
5. The largest of all is one request; that it is too large says nothing. That it is too small says that one was left
   out.
"""

from dataclasses import dataclass

from redline.quantities import duration, percent
from redline.selftest.results import Check, Judgement, Point

GOAL_NS = 20_000.0
GOAL_SHARE = 0.01
UNTOLD_SHARE = 0.5
SPOILING_SHARE = 0.5
BUSY_PRESSURE = 0.2
STANDSTILL_NS = 1e9


@dataclass(frozen=True)
class Truth:
    """What an answer at `q` is held to, in nanoseconds; see Point.

    What is unknown is compared with the truth, or with `scale_ns` where that is larger: at the edge of a stop the truth
    is nothing, and a hundredth of the stop is not much.
    """

    q: float
    truth_ns: float
    low_ns: float
    high_ns: float
    allowance_ns: float
    goal_ns: float
    scale_ns: float = 0.0


@dataclass(frozen=True)
class Machine:
    """What the machine did at that percentile in the same run, all in nanoseconds but the first.

    - lost_share: of the time, in which it gave engine or server no core, and until a queue had caught up
    - pressure_share: of the time, in which some process waited for a core
    - held_share: of the requests that the law holds, which lie beyond the percentile by right
    - way_ns: the round trip's quantile above its median
    - late_ns: the engine's lateness; sleeper_ns: that of a mere sleeper, outside the cases
    - spread_ns: between the slices of the case
    - drift_ns: by which the round trip's median moved during the selftest
    """

    lost_share: float = 0.0
    way_ns: float = 0.0
    late_ns: float = 0.0
    sleeper_ns: float = 0.0
    spread_ns: float = 0.0
    drift_ns: float = 0.0
    pressure_share: float = 0.0
    held_share: float = 0.0

    @property
    def explained_ns(self) -> float:
        """How much longer than the truth it may have made the answer."""
        late_ns = min(self.late_ns, self.sleeper_ns)
        return self.way_ns + late_ns + self.spread_ns + self.drift_ns

    def spoils(self, q: float) -> bool:
        """Whether it took away so much that half of what lies beyond q may be its doing."""
        if q >= 1 or self.lost_share <= 0:
            return False
        beyond = 1 - q
        if beyond > self.held_share - 1e-9:
            beyond -= self.held_share
        return self.lost_share >= SPOILING_SHARE * beyond

    @property
    def busy(self) -> bool:
        """Whether somebody else wants the cores."""
        return self.pressure_share >= BUSY_PRESSURE


def goal_ns(q: float, truth_ns: float) -> float:
    """20 us at the median; beyond it 1% of the truth where that is more."""
    return GOAL_NS if q <= 0.5 else max(GOAL_NS, GOAL_SHARE * truth_ns)


def judge(truth: Truth, answer_ns: float, machine: Machine) -> Point:
    """The point with its judgement."""
    judgement, reason = _judgement(truth, answer_ns, machine)
    return Point(
        q=truth.q,
        truth_ns=truth.truth_ns,
        low_ns=truth.low_ns,
        high_ns=truth.high_ns,
        allowance_ns=truth.allowance_ns,
        answer_ns=answer_ns,
        error_ns=answer_ns - truth.truth_ns,
        goal_ns=truth.goal_ns,
        judgement=judgement,
        reason=reason,
    )


def _judgement(truth: Truth, answer_ns: float, machine: Machine) -> tuple[Judgement, str]:
    below = truth.low_ns - answer_ns - truth.goal_ns
    above = answer_ns - truth.high_ns - truth.allowance_ns - truth.goal_ns
    unknown = (truth.high_ns - truth.low_ns) / 2 + truth.allowance_ns
    if below > machine.drift_ns:
        return "off", f"{duration(below + truth.goal_ns)} less than can be"
    if below > 0:
        return "too noisy to say", f"the round trip's median moved by {duration(machine.drift_ns)}"
    if unknown > max(UNTOLD_SHARE * max(truth.truth_ns, truth.scale_ns), truth.goal_ns):
        return "too noisy to say", f"chance and the server's lateness make {duration(unknown)} of it"
    if above <= 0:
        return "ok", ""
    return _too_large(truth.q, above, machine)


def _too_large(q: float, above_ns: float, machine: Machine) -> tuple[Judgement, str]:
    if q >= 1:
        return "too noisy to say", "one request, and too slow: any pause of the machine does that"
    rivals = _rivals(q, machine)
    if rivals:
        return "too noisy to say", rivals
    if above_ns <= machine.explained_ns:
        return "too noisy to say", f"this machine strays by {duration(machine.explained_ns)} at this percentile"
    return "off", f"{duration(above_ns)} past the goal, and this machine explains {duration(machine.explained_ns)}"


def _rivals(q: float, machine: Machine) -> str:
    """Whether others had the cores so often that they decide this percentile, in words; empty when not."""
    if machine.spoils(q):
        return f"time without a core reaches {_about(machine.lost_share)} of the requests"
    if machine.busy:
        return f"some process waited for a core for {_about(machine.pressure_share)} of the time"
    return ""


def _about(share: float) -> str:
    return percent(round(share, 3)) if share >= 0.001 else percent(share)


def check_late(name: str, q: float, late_ns: float, limit_ns: float, machine: Machine) -> Check:
    """The engine's own lateness against its goal; the machine's part is what a mere sleeper is late by."""
    judgement, reason = "ok", ""
    if late_ns > limit_ns:
        own_ns = late_ns - machine.sleeper_ns
        rivals = _rivals(q, machine)
        if rivals:
            judgement, reason = "too noisy to say", rivals
        elif own_ns <= limit_ns:
            judgement, reason = "too noisy to say", f"a mere sleeper is late by {duration(machine.sleeper_ns)} here"
        else:
            judgement, reason = "off", f"a mere sleeper is late by {duration(machine.sleeper_ns)}"
    return Check.model_validate(
        {"name": name, "value": late_ns, "limit": limit_ns, "unit": "ns", "judgement": judgement, "reason": reason}
    )


def check_fit(name: str, distance: float, critical: float, gap_ns: float, machine: Machine) -> Check:
    """A distance of Kolmogorov and Smirnov; a receiver that is woken late shifts it by that share of the mean gap."""
    judgement, reason = "ok", ""
    if distance > critical:
        shift = machine.sleeper_ns / gap_ns + machine.lost_share
        noisy = distance - shift <= critical
        judgement = "too noisy to say" if noisy else "off"
        reason = f"late wake-ups and lost time of this machine shift it by {shift:.2g}"
    return Check.model_validate(
        {
            "name": name,
            "value": distance,
            "limit": critical,
            "unit": "distance",
            "judgement": judgement,
            "reason": reason,
        }
    )


def check_answers(wrong: int, overdue: int, longest: Machine) -> Check:
    """Every request has its right answer: nothing that was lost may hide behind good percentiles.

    Those that are merely `overdue` may be so because the machine stood still; `longest` is its evidence at the maximum.
    """
    judgement: Judgement = "off" if wrong or overdue else "ok"
    reason = "requests without their right answer" if wrong else "requests that were not answered in time"
    stood_ns = max(longest.late_ns, longest.sleeper_ns, longest.way_ns)
    if overdue and not wrong and stood_ns >= STANDSTILL_NS:
        judgement, reason = "too noisy to say", f"the machine stood still for up to {duration(stood_ns)}"
    if judgement == "ok":
        reason = ""
    wrong += overdue
    return Check(name="wrong answers", value=wrong, limit=0, unit="requests", judgement=judgement, reason=reason)


def worst(judgements: list[Judgement]) -> Judgement:
    """Off if any is; else too noisy to say if any is; else ok."""
    for each in ("off", "too noisy to say"):
        if each in judgements:
            return "off" if each == "off" else "too noisy to say"
    return "ok"
