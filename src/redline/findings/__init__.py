"""Recordings -> findings: what makes a number doubtful. The limits and their reasons stand in `rules`."""

from redline.findings.cell import (
    host_mode,
    in_modes,
    is_valid,
    judge_cell,
    of_engine,
    only_lengthened,
    servers_doing,
    undecided,
    usable,
)
from redline.findings.hosts import pairs_differ
from redline.findings.machine import much_stolen
from redline.findings.rules import OF_THE_MACHINE, REASSURING, RULES, Rule
from redline.findings.trial import judge, judge_probe, judge_server, judge_trial
from redline.findings.warming import warm_up
