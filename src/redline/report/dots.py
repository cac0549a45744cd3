"""The trials behind an interval as dots: ratios to a baseline by round, or by start of a duet."""

from collections.abc import Callable, Mapping

from redline.model import CellReport, Comparison, Metric, TrialReport

_MOST_CELLS = 200
"""The most cells of a report with dots: the page of a larger study would be too large to mail."""
_OF_TRIAL: dict[Metric, Callable[[TrialReport], float | None]] = {
    Metric.THROUGHPUT: lambda trial: trial.rate_per_s,
    Metric.P50: lambda trial: trial.p50_ns,
    Metric.P99: lambda trial: trial.p99_ns,
    Metric.CPU_PER_REQUEST: lambda trial: trial.cpu_per_request_ns,
}


def by_round(cell: CellReport | None, metric: Metric) -> dict[int, float]:
    """Return the values by round of the trials on which the metric rests; empty if a report lacks them."""
    of_trial = _OF_TRIAL.get(metric)
    if cell is None or of_trial is None:
        return {}
    by_number = {trial.round: of_trial(trial) for trial in cell.trials if trial.used or trial.partly}
    return {number: value for number, value in by_number.items() if value}


def ratios(cells: Mapping[str, CellReport], comparison: Comparison | None) -> tuple[float, ...]:
    """Return cell over baseline in rounds with a trial of both; for a duet, in the starts that count."""
    if comparison is None or comparison.ratio is None or len(cells) > _MOST_CELLS:
        return ()
    if comparison.duet:
        return comparison.duet.of_starts
    ours, theirs = (
        by_round(cells.get(cell_id), comparison.metric) for cell_id in (comparison.cell_id, comparison.baseline_id)
    )
    return tuple(ours[number] / theirs[number] for number in ours if number in theirs)
