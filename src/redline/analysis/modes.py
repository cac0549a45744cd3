"""How fast the server's cores were in each trial, relative to the run, by the fixed work around its load. Pure."""

import math
from collections.abc import Mapping
from statistics import fmean, median

from redline.analysis.judged import JudgedCell
from redline.stats import TrialNumbers

FEWEST = 5
"""Trials from which on there is a median to compare with."""


def core_speeds(judged: Mapping[str, JudgedCell]) -> dict[int, float]:
    """By the trial's position: 1.4 if the cores were 40% faster than in the run's median trial, before and after.

    Of the two ends it is the one closer to 1, and 1 if one was faster and the other slower: then the speed changed
    in between. Trials without a measurement are left out, and so are all of them in a run of fewer than `FEWEST`.
    """
    trials = [trial.numbers for one in judged.values() for trial in one.trials if trial.numbers.fixed_work]
    if len(trials) < FEWEST:
        return {}
    took_ns: dict[int, list[int]] = {}
    for trial in trials:
        for work in trial.fixed_work:
            took_ns.setdefault(work.cpu, []).extend((work.before_ns, work.after_ns))
    usual_ns = {cpu: median(all_ns) for cpu, all_ns in took_ns.items()}
    return {trial.position: speed for trial in trials if (speed := _speed(trial, usual_ns)) is not None}


def _speed(trial: TrialNumbers, usual_ns: Mapping[int, float]) -> float | None:
    own = trial.server.cpus if trial.server else ()
    works = [work for work in trial.fixed_work if work.cpu in own]
    if not works:
        return None
    before = fmean(math.log(usual_ns[work.cpu] / work.before_ns) for work in works)
    after = fmean(math.log(usual_ns[work.cpu] / work.after_ns) for work in works)
    return math.exp(min(before, after, key=abs)) if before * after > 0 else 1.0
