"""What commands do where no flag says otherwise. `--help` shows these values, so this module imports nothing."""

AB_BUDGET, AB_LOAD = "60s", "closed:64"
"""The time that `redline ab` measures for, and its load."""
LOAD_LENGTH, LOAD_WARM_UP, LOAD_CONNECTIONS = "10s", "1s", 64
"""The measurement, the warm-up and the connections of `redline load`."""
SEARCH_PROBES, SEARCH_PRECISION = 12, "3%"
"""The most probes of a search, and the half width at which its interval is narrow enough."""
