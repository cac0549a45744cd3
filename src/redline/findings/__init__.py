"""Findings from recordings: what makes a number doubtful. Rules stand beside the functions that judge by them."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.findings.cell import host_mode, in_modes, undecided
    from redline.findings.duet import much_stolen as much_stolen_duet
    from redline.findings.failed import failures_text
    from redline.findings.failed import listed as listed_outcomes
    from redline.findings.hosts import pairs_differ
    from redline.findings.machine import much_stolen
    from redline.findings.repeated import Gathered, gathered, merged_by_text, named
    from redline.findings.rules import Rule
    from redline.findings.signatures import Pace
    from redline.findings.table import RULES
    from redline.findings.trial import (
        is_valid,
        judge,
        judge_among,
        judge_cell,
        judge_duet,
        judge_probe,
        judge_search,
        judge_server,
        judge_starts,
        judge_trial,
        of_engine,
        servers_doing,
        usable,
    )
    from redline.findings.validity import (
        Touch,
        Touched,
        at_each_time,
        ends_early,
        is_late_at,
        left_by_all,
        touched_by,
        until_cut,
    )
    from redline.findings.warming import WarmupDetector, warm_up
else:
    __getattr__ = offered(__name__)
