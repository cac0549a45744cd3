"""Series that a simulated recording does not have, given by their changes over the trial."""

from redline.model import Recording, Series, Subject

STEP_NS = 100_000_000
AROUND_NS = 300_000_000


def counting(recording: Recording, subject: Subject, **per_s: float) -> Recording:
    """The same recording with counters that grow by this much per second, before, in and after the window."""
    return _with(recording, subject, "counter", {name: (0.0, rate) for name, rate in per_s.items()})


def showing(recording: Recording, subject: Subject, **values: tuple[float, float]) -> Recording:
    """The same recording with gauges that change from one value to another over the whole trial."""
    seconds = len(_times(recording)) * STEP_NS / 1e9
    slopes = {name: (first, (last - first) / seconds) for name, (first, last) in values.items()}
    return _with(recording, subject, "gauge", slopes)


def _with(recording: Recording, subject: Subject, kind: str, lines: dict[str, tuple[float, float]]) -> Recording:
    times = _times(recording)
    added = tuple(
        Series.model_validate(
            {
                "name": name,
                "unit": "1",
                "subject": subject,
                "kind": kind,
                "times_unix_ns": times,
                "values": tuple(first + per_s * (at - times[0]) / 1e9 for at in times),
            }
        )
        for name, (first, per_s) in lines.items()
    )
    kept = tuple(one for one in recording.series if one.subject != subject or one.name not in lines)
    return recording.model_copy(update={"series": (*kept, *added)})


def _times(recording: Recording) -> tuple[int, ...]:
    assert recording.traffic is not None
    end = recording.traffic.window_unix_ns[1] + AROUND_NS
    return tuple(range(recording.traffic.epoch_unix_ns - AROUND_NS, end, STEP_NS))
