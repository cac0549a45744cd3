"""A connection for each request, of loads, comparisons and searches alike."""

from collections.abc import Callable, Mapping

from redline.asking.asks import RequestAsk
from redline.asking.written import Sourced
from redline.errors import UsageError
from redline.wording import part

_NAME = "no_keepalive"


def kept_alive_or_not(document: Mapping[str, object], ask: RequestAsk) -> dict[str, object]:
    """Return the document; if that is asked for, its requests and loads use a connection once. Raises UsageError."""
    if not ask.no_keepalive:
        return {**document}
    if ask.http2:
        raise UsageError(
            part(_NAME) + ": HTTP/2 has no `Connection: close`", hint=f"leave out {part('http2')} or {part(_NAME)}"
        )
    for key in ("depth", "requests_per_connection"):
        if (getattr(ask, key, None) or 0) > 1:
            message = part(_NAME) + ": " + part(key) + " puts several requests on a connection"
            raise UsageError(message, hint=f"leave out {part(key)} or {part(_NAME)}")
    if "scenarios" not in document:
        message = part(_NAME) + ": the redline.yaml of a revision says what is requested"
        raise UsageError(message, hint=f"give {part('path')} or {part('requests')} too")
    return {
        **document,
        "scenarios": _changed_items(document["scenarios"], _closing),
        "loads": _entries(document["loads"], lambda load: _entries(load, _used_once)),
    }


def _closing(asked: object) -> object:
    """A request, a mix of several or a journey, with the header that tells the server to close the connection."""
    written = _mapping(asked)
    if written is None:
        return asked
    if "requests" in written:
        return _with(asked, requests=_changed_items(written["requests"], _closing))
    if "journey" in written:
        steps = _mapping(written["journey"]) or {}
        closing = {key: _changed_items(steps[key], _closing) for key in ("once", "steps") if key in steps}
        return _with(asked, journey=_with(written["journey"], **closing))
    headers = _mapping(written.get("headers")) or {}
    kept = {name: value for name, value in headers.items() if name.lower() != "connection"}
    return _with(asked, headers={**kept, "Connection": Sourced(part(_NAME), "close")})


def _used_once(shape: object) -> object:
    """The shape of a load, whose connections are replaced after a request; other keys of a load stay."""
    return shape if _mapping(shape) is None else _with(shape, requests_per_connection=Sourced(part(_NAME), 1))


def _mapping(written: object) -> Mapping[str, object] | None:
    inner = written.value if isinstance(written, Sourced) else written
    return inner if isinstance(inner, Mapping) else None


def _with(written: object, **values: object) -> object:
    """A mapping of the document with these values; it keeps its source."""
    if isinstance(written, Sourced):
        return Sourced(written.source, _with(written.value, **values))
    assert isinstance(written, Mapping), "a mapping was looked up before"
    return {**written, **values}


def _entries(written: object, change: Callable[[object], object]) -> object:
    return _with(written, **{key: change(value) for key, value in (_mapping(written) or {}).items()})


def _changed_items(written: object, change: Callable[[object], object]) -> object:
    if isinstance(written, Sourced):
        return Sourced(written.source, _changed_items(written.value, change))
    assert isinstance(written, (list, tuple)), "requests and steps are lists"
    return [change(item) for item in written]
