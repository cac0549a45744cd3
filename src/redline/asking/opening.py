"""Read the files of requests and the recordings that are asked for, and say what they hold."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from redline.asking.asks import ComparisonAsk, Listed, LoadAsk, SearchAsk
from redline.asking.imported import as_document, read_file, read_recording, summary, times_of, times_summary
from redline.asking.naming import naming
from redline.asking.requests import BODY_FILE, check_is_not_described
from redline.asking.written import Sourced
from redline.defaults import LOAD_LENGTH
from redline.errors import UsageError
from redline.model.run import Kind
from redline.quantities import parse_duration, parse_speed
from redline.running.manifests import Source
from redline.schema.document import Document
from redline.wording import as_argument, part

A = TypeVar("A", LoadAsk, ComparisonAsk, SearchAsk)
Command: TypeAlias = Callable[[], str]
"""The command or the call as it is stored; asked for once the suite is made, and with it all secrets are known."""


def opened(ask: A) -> tuple[A, list[str]]:
    """Return what is asked for with what its files hold, and what there is to say of them. Raises UsageError."""
    speed = None if isinstance(ask, SearchAsk) else ask.speed
    if speed is not None and ask.replay is None:
        message = part("speed", speed) + ": only a recording has a speed"
        raise UsageError(message, hint=f"add {part('replay', 'FILE')}")
    said: list[str]
    replayed, said = _with_recording(ask)
    if replayed.requests is None or replayed.listed is not None:
        return replayed, said
    path = None if isinstance(replayed, LoadAsk) else replayed.path
    check_is_not_described(replayed, None if path is None else Sourced(part("path", path), path))
    read = read_file(replayed.requests)
    if isinstance(read, Document):
        return replace(replayed, listed=Listed(read)), said
    listed = Listed(as_document(read, replayed.requests), is_traffic=True)
    return replace(replayed, listed=listed), [*said, summary(read, replayed.requests, replayed.targets_named)]


def source_of(ask: LoadAsk | ComparisonAsk | SearchAsk, command: Command, text: str, kind: Kind = "run") -> Source:
    """Where a session comes from, with the files that its suite names and nobody else has."""
    kept: dict[str, str | bytes] = {}
    if isinstance(ask.body, bytes):
        kept[BODY_FILE], text = ask.body, f"# {BODY_FILE} is in the directory of this run\n{text}"
    if ask.recorded is not None:
        kept.update(ask.recorded.kept)
        text = ask.recorded.suite(text)
    return Source(command(), text=text, kind=kind, kept=kept)


def _with_recording(ask: A) -> tuple[A, list[str]]:
    """The same with the requests and the times of a log or a recording that is replayed. Raises UsageError."""
    if ask.replay is None or ask.recorded is not None or not ask.replay.is_file():
        return ask, []
    made = read_recording(ask.replay)
    if made is None:
        return ask, []
    source = part("replay", ask.replay)
    if ask.requests is not None or ask.listed is not None:
        command = f"redline import {as_argument(ask.replay)} -o LIST --times FILE"
        hint = f"leave out {part('requests')}; or take its times alone: {command}"
        raise UsageError(source + ": it has its own requests", hint=hint)
    if ask.scenarios:
        message = part("scenarios", ",".join(ask.scenarios)) + ": a replay sends all of its requests"
        raise UsageError(message, hint=f"leave out {part('scenarios')}")
    recorded = times_of(made)
    said: list[str] = [summary(made, ask.replay, ask.targets_named), times_summary(made)]
    found: A = replace(ask, listed=Listed(as_document(made, ask.replay), is_traffic=True), recorded=recorded)
    return found, [*said, *(_cut(found) if isinstance(found, LoadAsk) else [])]


def length_of(ask: LoadAsk) -> str:
    """How long a load measures: where nothing is asked for, no longer than a recording lasts. Raises UsageError."""
    length = LOAD_LENGTH if ask.duration is None else ask.duration
    if ask.duration is None and ask.recorded is not None and _sends_all(ask, length):
        return f"{_recorded_ms(ask)}ms"
    return length


def _cut(ask: LoadAsk) -> list[str]:
    """Say that a recording is not sent to its end."""
    length = LOAD_LENGTH if ask.duration is None else ask.duration
    if _sends_all(ask, length):
        return []
    return [
        f"the first {length} of it are sent; {part('duration', f'{math.ceil(_recorded_ms(ask) / 1000)}s')} sends all"
    ]


def _sends_all(ask: LoadAsk, length: str) -> bool:
    lasts_ns = _recorded_ms(ask) * 1_000_000
    with naming(part("duration", length)):
        return lasts_ns <= parse_duration(length)


def _recorded_ms(ask: LoadAsk) -> int:
    """How long a recording lasts at its speed, in milliseconds."""
    assert ask.recorded is not None, "it was read"
    with naming(part("speed")):
        speed = parse_speed(1 if ask.speed is None else ask.speed)
    return round(ask.recorded.last_ns / speed) // 1_000_000 + 1
