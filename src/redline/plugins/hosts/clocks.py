"""What chrony says of this host's clock."""

import subprocess

from redline.model import ClockReading

COMMAND = ("chronyc", "-n", "-c", "tracking")
_WITHIN_S = 5.0
_FIELDS = 14
_NONE = "00000000"
"""The reference of a clock that follows none."""


def read_clock() -> ClockReading | None:
    """The reading of now; None if no chronyd answers here."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_tracking(done.stdout) if done.returncode == 0 else None


def parse_tracking(line: str) -> ClockReading | None:
    """What `chronyc -c tracking` printed; None if it is not that, or if the clock follows none.

    The fields: reference id, its name, stratum, time of the last update, system offset, last offset, RMS offset,
    frequency, residual frequency, skew, root delay, root dispersion, update interval, leap status; in seconds. The
    system offset is positive when the clock is behind (chronyc: "slow of NTP time").
    """
    fields = line.strip().split(",")
    if len(fields) != _FIELDS or fields[0] in (_NONE, ""):
        return None
    try:
        stratum, offset_s, delay_s, dispersion_s = (
            int(fields[2]),
            float(fields[4]),
            float(fields[10]),
            float(fields[11]),
        )
    except ValueError:
        return None
    if fields[13] == "Not synchronised" or delay_s < 0 or dispersion_s < 0:
        return None
    return ClockReading(
        reference=fields[1] or fields[0],
        stratum=stratum,
        offset_ns=round(-offset_s * 1e9),
        root_delay_ns=round(delay_s * 1e9),
        root_dispersion_ns=round(dispersion_s * 1e9),
    )
