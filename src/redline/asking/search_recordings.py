"""Recordings that a search sends: their first speed, and those that are too short for a probe."""

from redline.asking.asks import SearchAsk
from redline.asking.naming import naming
from redline.document.format import count
from redline.errors import UsageError
from redline.model import Load, Open, Suite
from redline.quantities import duration, parse_speed, speed
from redline.search.stretch import FEWEST, due_in, shortest_probe_ns
from redline.wording import part

_LONGER = "take a longer recording"


def check_is_speed(start: str | float) -> None:
    """Raise UsageError for a first speed of a recording that is written as a rate."""
    if not str(start).strip().endswith("x"):
        message = part("start", start) + ": a recording is sent at a speed, not at a rate"
        raise UsageError(
            message, hint=f"write how many times faster than recorded it is sent first: {part('start', '2x')}"
        )


def at_first_speed(suite: Suite, ask: SearchAsk) -> Suite:
    """Return the suite with its recordings at the first speed that is asked for, if one is. Raises UsageError."""
    replays = [load for load in suite.loads if load.is_replay]
    if ask.start is None or not replays:
        return suite
    if rated := [load.name for load in suite.loads if isinstance(load.shape, Open) and load not in replays]:
        asked = part("start", ask.start)
        message = asked + f": `{replays[0].name}` is a recording with a speed, and `{rated[0]}` has a rate"
        raise UsageError(message, hint=f"search them one after the other, with {part('loads')}")
    check_is_speed(ask.start)
    with naming(part("start", ask.start)):
        first = parse_speed(ask.start)
    loads = tuple(load.shaped(load.open_shape.sped(first)) if load in replays else load for load in suite.loads)
    return suite.under(loads, suite.warmup_by)


def refuse_short_recordings(suite: Suite, *, by_warm_up: bool) -> None:
    """Raise UsageError for a recording that no probe can send; `by_warm_up`: its first speed is not known yet."""
    for load in (load for load in suite.loads if load.is_replay):
        times = load.open_shape.replayed_ns
        if len(times) < FEWEST:
            message = f"the recording has {count(len(times), 'request')}, and a search needs {FEWEST} at least"
            raise UsageError(message, hint=_LONGER)
        if times[0] == times[-1]:
            message = f"all {len(times):,} requests of the recording are due at the same time, at any speed"
            raise UsageError(message, hint="take a recording of some seconds, or a log that has times")
        if not by_warm_up:
            _refuse_short_at_first(load)


def _refuse_short_at_first(load: Load) -> None:
    """Raise UsageError for a recording that is too short, or of too few requests, at its first speed."""
    times, first = load.open_shape.replayed_ns, speed(load.open_shape.speed)
    if (due := due_in(load)) < FEWEST:
        message = f"at {first}, {count(due, 'request')} of the recording are due in {duration(load.duration_ns)}"
        hint = (
            f"begin faster, such as {part('start', '10x')}, or give longer probes ({part('duration')}): "
            f"{FEWEST} requests are the fewest"
        )
        raise UsageError(message, hint=hint)
    if times[-1] < (shortest_ns := shortest_probe_ns(load)):
        message = f"at {first} the recording lasts {duration(times[-1])}, and a probe {duration(shortest_ns)} at least"
        slower = f"begin slower ({part('start')}), give shorter probes ({part('duration')})"
        raise UsageError(message, hint=f"{slower}, or {_LONGER}")
