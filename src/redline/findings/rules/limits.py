"""Limits that several rules share, or that stand beside a rule, each with its reason."""

from redline.model import FindingKind

BUSY_SERVER = 0.85
"""From this share of its cores on, the server is at its limit: the wait in an M/M/1 queue is then 5.7 service times."""

FULL_SERVER = 0.95
"""From this share on its cores have no more to give: the rate is the server's own, however busy the client."""

OTHERS_BUSY = 0.10
"""Less of the machine's CPU time than this, used by neither server nor engine, is the kernel's own housekeeping."""

TICK_NS = 10_000_000
"""How finely the kernel tells how busy a core was: in ticks of 10 ms, one at either end of a window."""

TREND_P = 0.001
"""Chance of calling noise a trend, per trial: a run of 75 good trials raises a false alarm once in 13 runs at most."""

ARRIVALS_P = 1e-5
"""Chance of blaming a schedule that is kept, for each of three tests: a false alarm once in 30,000 trials."""

ALIKE_P = 0.001
"""Chance of taking independent trials for dependent ones, per cell: once in 1,000 cells."""

WANTED_TRIALS = 5
"""With fewer, the t distribution alone widens an interval by more than 2.78 / 1.96 = 1.4 times."""

WANTED_BEYOND = 100
"""Requests beyond p99 that fix it to about 2% when response times fall off exponentially: 1 / (sqrt(100) ln 100)."""

REASSURING = frozenset({FindingKind.SERVER_LIMITED})
"""What is good to know and no doubt: it is told once, and marks no number."""

SERVERS_DOING = frozenset(
    {
        FindingKind.ERRORS,
        FindingKind.WRONG_ANSWERS,
        FindingKind.RATE_MISSED,
        FindingKind.SERVER_DIED,
        FindingKind.TRIAL_FAILED,
    }
)
"""Doubts that tell how the server did. A trial lost to one has no numbers, but it happened: no objective is met."""
