"""The table of findings: all rules by kind, and all functions that judge by them, from the modules by subject."""

from types import ModuleType

from redline.findings import (
    accumulation,
    across,
    arrivals,
    cell,
    duet,
    duet_machine,
    extensions,
    failed,
    growth,
    hosts,
    listening,
    load,
    machine,
    memory,
    network,
    over_time,
    right_answers,
    server,
    signatures,
    stalls,
    steadiness,
    tcp_waits,
    two_modes,
    users,
)
from redline.findings.rules import Judge, Rule
from redline.model import FindingKind

SUBJECTS: dict[str, ModuleType] = {
    "Requests and answers": failed,
    "Users without an answer": users,
    "The load": load,
    "The schedule": arrivals,
    "The course": over_time,
    "Stalls": stalls,
    "Quick and slow requests": two_modes,
    "Patterns of times": signatures,
    "Warm-up and answers": steadiness,
    "What grows": growth,
    "The machine": machine,
    "The network": network,
    "Waits of TCP": tcp_waits,
    "The server": server,
    "Memory": memory,
    "What a server keeps": accumulation,
    "Several hosts": hosts,
    "What other packages bring": extensions,
    "A cell": cell,
    "Servers side by side": across,
    "A duet": duet,
    "A duet beside other work": duet_machine,
    "Short queues": listening,
    "Doubtful right answers": right_answers,
}
"""The modules by the subject of their findings, in the order of the page."""


class _Rules(dict[FindingKind, Rule]):
    def __missing__(self, kind: FindingKind) -> Rule:
        """A rule without limits, for a finding that another version made."""
        return Rule(kind)


RULES = _Rules(
    (rule.kind, rule) for module in SUBJECTS.values() for rule in vars(module).values() if isinstance(rule, Rule)
)
JUDGES: tuple[Judge, ...] = (
    *(Judge(rule.function, rule.when, rule.probes, rule) for rule in RULES.values() if rule.function),
    *(judge for module in SUBJECTS.values() for judge in vars(module).values() if isinstance(judge, Judge)),
)
