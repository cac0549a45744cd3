"""Findings about what other packages brought to a trial."""

from redline.findings.rules import Observation, Rule
from redline.stats import Trial


@Rule("monitor-failed", when="trial", note=0.0, unit="")
def monitor_failed(trial: Trial) -> Observation | None:
    """A monitor of another package failed; always a **note**. Its series of this trial are left out.

    Nothing that Redline itself measured is touched: the load and its own monitors went on.

    Advice: Correct the monitor, or leave it out of `monitors`.
    """
    failed = trial.recording.failed_monitors
    if not failed:
        return None
    reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
    return Observation(float(len(failed)), f"Without what it would have seen, for a monitor failed: {reasons}.")
