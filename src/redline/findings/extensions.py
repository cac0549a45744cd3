"""Findings about what other packages brought to a trial."""

from redline.findings.rules import HOLDS, Observation, Rule
from redline.model import Traffic
from redline.stats import Trial


@Rule("other-driver", when="traffic", warn=0.0, unit="", biases="times and rates are as the driver tells them")
def other_driver(traffic: Traffic) -> Observation | None:
    """The load came from a driver of another package; always a **warn**.

    Its answers before the load were checked by Redline, and its counts add up. When requests were due and sent, whether
    every answer was right, and whether it could have sent more, is known from the driver alone.

    Advice: Take numbers to publish from redline-engine: leave out `driver`.
    """
    engine = traffic.engine
    if not traffic.own_driver:
        return None
    named = f"{engine.name} {engine.version}".rstrip()
    return Observation(HOLDS, f"The load came from the driver {named}, which Redline has not tested.")


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
