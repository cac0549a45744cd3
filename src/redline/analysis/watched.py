"""What monitors of other packages saw in the trials of a cell."""

from collections.abc import Sequence
from statistics import fmean, median

from redline.model import Series, WatchedSeries
from redline.stats import Trial


def watched_series(trials: Sequence[Trial]) -> tuple[WatchedSeries, ...]:
    """Every series of their monitors in the measurements of these trials, in the order in which they came."""
    samples: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for trial in trials:
        for series in trial.recording.series:
            if series.is_of_a_package and trial.traffic is not None:
                key = series.name, series.subject, series.unit, series.kind
                known = samples.setdefault(key, [])
                if (seen := _mean_and_most(series, trial.traffic.window_unix_ns)) is not None:
                    known.append(seen)
    return tuple(
        WatchedSeries(
            name=name,
            subject=subject,
            unit=unit,
            kind=kind,
            trials=len(known),
            middle=median(mean for mean, _ in known) if known else None,
            lowest=min((mean for mean, _ in known), default=None),
            highest=max((mean for mean, _ in known), default=None),
            most=max((most for _, most in known), default=None) if kind == "gauge" else None,
        )
        for (name, subject, unit, kind), known in samples.items()
    )


def _mean_and_most(series: Series, window_unix_ns: tuple[int, int]) -> tuple[float, float] | None:
    """Return the mean and the most of a gauge's samples in a window, or the increase per second of a counter, twice."""
    start, end = window_unix_ns
    if series.kind == "counter":
        increase = series.increase(start, end)
        if increase is None:
            return None
        per_s = increase * 1e9 / (end - start)
        return per_s, per_s
    within = [value for at, value in zip(series.times_unix_ns, series.values, strict=True) if start <= at <= end]
    return (fmean(within), max(within)) if within else None
