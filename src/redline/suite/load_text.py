"""Describe a load in words."""

from redline.model import Closed, Load, LoadStage, Open
from redline.quantities import duration

_OPEN = "open"


def is_open(text: str) -> bool:
    """Whether a load that `load_text` describes is open."""
    return text.startswith(f"{_OPEN}, ")


def load_text(load: Load) -> str:
    """`closed, 64 users, 1s`; `open, 5,000/s poisson, 64 connections, 1s`; `closed, 0 users to 1,000 over 30s, 60s`."""
    shape = load.shape
    length = f"{round(load.duration_ns / 1e9, 3):g}s" + (f" or {load.count:,} requests" if load.count else "")
    most = shape.requests_per_connection
    replaced = f"{most:,} {'request' if most == 1 else 'requests'} a connection" if most else ""
    parts = _closed(shape) if isinstance(shape, Closed) else _open(shape)
    return ", ".join(part for part in (*parts, replaced, length) if part)


def warmed_by(load: Load) -> str:
    """The load that warms a server up: `2 users`, or `1,000 requests/s`."""
    shape = load.shape
    return _users(shape.users) if isinstance(shape, Closed) else f"{shape.most_per_s:,.7g} requests/s"


def _users(users: int) -> str:
    return "1 user" if users == 1 else f"{users:,} users"


def _closed(shape: Closed) -> tuple[str, ...]:
    users, think = _users(shape.users), shape.think
    drawn = " (exponential)" if think and think.distribution == "exponential" else ""
    return (
        "closed",
        users + _stages(shape.stages, ""),
        f"{shape.depth} deep" if shape.depth > 1 else "",
        f"thinking {duration(think.mean_ns)}{drawn}" if think else "",
        f"{shape.pace_per_s:,.10g}/s each" if shape.pace_per_s else "",
    )


def _open(shape: Open) -> tuple[str, ...]:
    if shape.share:
        share = shape.share.text
        known = share if shape.rate_per_s is None else f"{shape.rate_per_s:,.10g}/s ({share})"
        rate = f"{known} {shape.arrivals}"
    elif shape.rate_per_s is None:
        rate = f"{len(shape.replayed_ns):,} replayed {'requests' if shape.replayed_requests else 'arrivals'}"
    else:
        rate = f"{shape.rate_per_s:,.10g}/s{_stages(shape.stages, '/s')} {shape.arrivals}"
    start = "" if shape.connections_at_start is None else f" ({shape.connections_at_start:,} at the start)"
    return (_OPEN, rate, f"{shape.connections:,} connections{start}", f"{shape.depth} deep" if shape.depth > 1 else "")


def _stages(stages: tuple[LoadStage, ...], unit: str) -> str:
    """` to 1,000 over 30s, to 500 at once`; of more than three stages, the middle stages are counted."""
    times = (f"over {stage.over_ns / 1e9:g}s" if stage.over_ns else "at once" for stage in stages)
    parts = [f"to {stage.to:,.10g}{unit} {over}" for stage, over in zip(stages, times, strict=True)]
    if len(parts) > 3:
        parts = [*parts[:2], f"and {len(parts) - 3} stages more", parts[-1]]
    return f" {', '.join(parts)}" if parts else ""
