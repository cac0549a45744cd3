"""The one table of doubts: what is measured, from where on it is a note, a warning or invalid, and why there.

`docs/concepts/findings.md` teaches each rule under an anchor of its kind; a test keeps the two alike.
"""

from redline.findings.rules.cell import CELL
from redline.findings.rules.limits import (
    ALIKE_P,
    ARRIVALS_P,
    BUSY_SERVER,
    FULL_SERVER,
    OTHERS_BUSY,
    REASSURING,
    SERVERS_DOING,
    TICK_NS,
    TREND_P,
    WANTED_BEYOND,
    WANTED_TRIALS,
)
from redline.findings.rules.machine import MACHINE
from redline.findings.rules.network import NETWORK
from redline.findings.rules.rule import Rule
from redline.findings.rules.server import SERVER
from redline.findings.rules.traffic import TRAFFIC
from redline.model import FindingKind

RULES: dict[FindingKind, Rule] = {rule.kind: rule for rule in (*TRAFFIC, *SERVER, *NETWORK, *MACHINE, *CELL)}

__all__ = [
    "ALIKE_P",
    "ARRIVALS_P",
    "BUSY_SERVER",
    "FULL_SERVER",
    "OTHERS_BUSY",
    "REASSURING",
    "RULES",
    "SERVERS_DOING",
    "TICK_NS",
    "TREND_P",
    "WANTED_BEYOND",
    "WANTED_TRIALS",
    "Rule",
]
