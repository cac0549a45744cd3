"""Doubts about the server. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

SERVER = (
    Rule(
        FindingKind.SERVER_DIED,
        "whether the server ended before it was told to",
        note=None,
        warn=None,
        invalid=0.0,
        reason="What was measured is a server on its way out, and the errors after it.",
        advice="Read the end of its output in the run directory; out of memory shows in the kernel's log.",
    ),
    Rule(
        FindingKind.TRIAL_FAILED,
        "whether the trial ended without usable traffic",
        note=None,
        warn=None,
        invalid=0.0,
        reason="There is nothing to estimate from.",
        advice="Read the failure and the end of the server's output, mend it, and run the suite again.",
    ),
)
