"""How a search is shown while it runs: a line for each probe."""

from redline.model.limits import LimitStart
from redline.quantities import duration, rate, significant
from redline.report.sections.limit import warm_up_text
from redline.search import Evidence


def probe_line(evidence: Evidence, why: str, number: int) -> str:
    """`3  1.77 k/s  p50 2.1 ms  p99 18 ms  (near where the model sees the edge)`."""
    p50, p99 = evidence.response.quantiles_ns((0.5, 0.99))
    saw = f"p50 {duration(p50)}  p99 {duration(p99)}"
    if evidence.hopeless:
        saw = f"hopeless after {significant(evidence.seconds, 2)} s: answered {rate(evidence.answered_per_s)}"
    errors = sum(each.errors for each in evidence.slices)
    notes = "".join(
        (f"  errors {errors:,}" if errors else "", f"  not the server: {evidence.client}" if evidence.client else "")
    )
    return f"{number:>3}  {rate(evidence.rate_per_s):>10}  {saw}{notes}  ({why})"


def warm_line(start: LimitStart) -> str:
    """`     steady after 12.5 s`, under the numbers of the probes."""
    return f"     {warm_up_text(start)}"


def wait_line(seconds: float) -> str:
    """`     once more in 5 s …`, under the probe that was disturbed."""
    return f"     once more in {seconds:g} s, when the host may have given the CPU time back"
