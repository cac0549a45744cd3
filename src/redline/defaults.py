"""What commands do where no flag says otherwise. `--help` shows these values: this module imports nothing of ours."""

from typing import Literal, TypeAlias

DuetMetric: TypeAlias = Literal[
    "cpu",
    "throughput",
    "p50",
    "p75",
    "p90",
    "p95",
    "p99",
    "first-message p50",
    "first-message p95",
    "gap p50",
    "gap p99",
    "per-message p50",
    "push p50",
    "push p99",
    "jitter p99",
]
"""What verdicts may be about: CPU time per request, throughput, or a percentile of times."""

AB_BUDGET, AB_MOST, AB_USERS = "60s", "20m", 64
AB_LOAD = f"closed:{AB_USERS}"
"""The time that `redline ab` measures each request for, the longest for all of them, and its load."""
BISECT_LENGTH = "30s"
"""How long `redline bisect` measures each commit."""
RUN_LENGTH = "5s"
"""How long a load of redline.yaml measures a server alone."""
LOAD_LENGTH, LOAD_WARM_UP, LOAD_CONNECTIONS = "10s", "1s", 64
"""The measurement, the warm-up and the connections of `redline load`."""
NO_WARM_UP = "0s"
"""The warm-up of a load of so many requests: it sends no others, unless it is asked to."""
SEARCH_PROBES, SEARCH_PRECISION = 12, "3%"
"""The most probes of a search, and the half width at which its interval is narrow enough."""
ALONE = "requests"
"""The name of a request that is described by itself, and has no other."""
QUIET = "5m"
"""How long the starts of a run wait for a quiet machine, in all."""
WAIT = "1h"
"""How long `--wait` waits for other measurements."""
