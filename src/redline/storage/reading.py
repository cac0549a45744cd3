"""Read what is stored: regular files of a bounded size, each of which may be cut short, damaged or somebody else's.

No recording ends a report. In place of one that cannot be used stands its place in the plan, with the reason as its
failure.
"""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from redline.errors import StoreError
from redline.files import read_regular
from redline.model import Cell, DuetRecording, DuetSlice, Frozen, Histogram, PlannedDuet, PlannedTrial, Recording
from redline.model.recording import Failure
from redline.model.run import Kind
from redline.model.search import ProbeRecording
from redline.storage.earlier import Raw
from redline.wording import as_argument

T = TypeVar("T", bound=Frozen)
MANIFEST = "run.json"
CAPACITY = "capacity"
"""The folder of the capacity in the directory of a run that has two parts."""
MOST_BYTES = 256 << 20
"""The longest file that is read: hundreds of times the recording of an hour."""
_LARGE, _EXPONENT, _TWENTY_DIGITS = re.compile(rb"9[2-9]\d{17}"), re.compile(rb"e\+?0+,"), b"0" * 20
"""What every number too large has, the last two among `_SIGNS`, and hardly anything else: base64 and times in
nanoseconds of today have none. Patterns by themselves, since `re` looks for the beginning of one faster than for those
of several."""
_ALIKE = {"0123456789": "0", "eE": "e", "+": "+", " \t\n\r\f\v,]}": ","}
_SIGNS = bytes(next((ord(sign) for alike, sign in _ALIKE.items() if chr(byte) in alike), 0) for byte in range(256))
"""Digits, exponents and what ends a number as one sign each, for fewer false beginnings."""
_LARGEST = 1 << 63
"""Nanoseconds up to the year 2262, and more than any counter reaches."""


class _Stamp(BaseModel):
    kind: Kind = "run"


def stored_json(value: Frozen) -> bytes:
    """A value as JSON for a run directory."""
    return (value.model_dump_json(indent=1) + "\n").encode()


def stamped(file: Path) -> Kind:
    """The kind in a manifest. Raises OSError and ValidationError."""
    return _Stamp.model_validate_json(read_regular(file, MOST_BYTES)).kind


def too_large(content: bytes) -> str:
    """The first number in JSON that is larger than any measurement, with its place; empty for none."""
    numbers = content if b"\\" in content else b" ".join(content.split(b'"')[::2])  # most of it is text, in quotes
    signs = numbers.translate(_SIGNS) + b","
    if not _LARGE.search(numbers) and _TWENTY_DIGITS not in signs and not _EXPONENT.search(signs):
        return ""
    with contextlib.suppress(ValueError):
        return _larger(from_json(content), "")
    return ""


def _larger(value: object, place: str) -> str:
    if isinstance(value, int | float) and not abs(value) < _LARGEST:
        return f"{place or 'the file'}: {value:.6g} is larger than any measurement"
    if isinstance(value, dict):
        return next(filter(None, (_larger(own, f"{place}.{key}".lstrip(".")) for key, own in value.items())), "")
    if isinstance(value, list):
        return next(filter(None, (_larger(own, f"{place}.{at}") for at, own in enumerate(value))), "")
    return ""


def read_stored(
    file: Path,
    kind: type[T],
    without_it: str = "",
    todays: Callable[[Raw], Raw] | None = None,
) -> T:
    """Read a file of a run directory. Raises StoreError, naming the file, if it cannot be read.

    `without_it` is a hint for a damaged file; by default it says what makes it again. `todays` makes today's
    form of what an earlier version stored.
    """
    return stored_in(content_of(file), file, kind, without_it, todays)


def content_of(file: Path) -> bytes:
    """The bytes of a file of a run directory. Raises StoreError, naming the file, if it cannot be read."""
    try:
        return read_regular(file, MOST_BYTES)
    except OSError as error:
        hint = "see whether it is there, who may read it, and the disk"
        raise StoreError(f"{file} cannot be read: {error.strerror}", hint=hint) from error


def stored_in(
    content: bytes,
    file: Path,
    kind: type[T],
    without_it: str = "",
    todays: Callable[[Raw], Raw] | None = None,
) -> T:
    """What these bytes of a file hold, as `read_stored` reads it."""
    without_it = without_it or _made_again_by(file)
    if large := too_large(content):
        raise StoreError(f"{file}: {large}", hint=f"it is damaged: {without_it}")
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        what = first["msg"].removeprefix("Value error, ")
        if todays is not None and first["type"] != "json_invalid":
            with contextlib.suppress(ValidationError, ValueError, AttributeError):
                return kind.model_validate_json(to_json(todays(from_json(content))))
    if not content.strip():
        raise StoreError(f"{file} is empty", hint=without_it)
    if first["type"] == "json_invalid":
        state = "cut off" if "EOF" in what else "damaged"
        raise StoreError(f"{file} is {state}: {what[0].lower()}{what[1:]}", hint=without_it)
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    raise StoreError(f"{file}: {where}: {what}", hint=f"it is damaged or of a later version; if damaged, {without_it}")


def trial_of(file: Path, planned: PlannedTrial, content: bytes | None = None) -> Recording:
    """The recording of a planned trial; with a failure in place of all that it holds where that cannot be used.

    `content` are the bytes of the file, if they are at hand.
    """
    try:
        recording = stored_in(content_of(file) if content is None else content, file, Recording)
    except StoreError as error:
        return _lost_trial(planned, error.message, error.hint)
    if (recording.position, recording.cell_id) != (planned.position, planned.cell_id):
        return _lost_trial(planned, f"{file} holds the recording of another trial, {recording.position}", _moved(file))
    return recording


def duet_of(file: Path, planned: PlannedDuet) -> DuetRecording:
    """The recording of a planned duet, as `trial_of`."""
    try:
        recording = read_stored(file, DuetRecording)
    except StoreError as error:
        return _lost_duet(planned, error.message, error.hint)
    if (recording.position, recording.cell_ids) != (planned.position, _targets(planned)):
        return _lost_duet(planned, f"{file} holds the recording of another duet, {recording.position}", _moved(file))
    if why := _impossible(recording):
        return _lost_duet(planned, f"{file}: {why}", f"it is damaged: {_made_again_by(file)}")
    return recording


def probe_of(file: Path, cell: Cell) -> ProbeRecording:
    """The recording of a load of the search on a cell. Raises StoreError, naming the file, if it is not that."""
    made = read_stored(file, ProbeRecording)
    if (made.recording.position, made.recording.cell_id) != (int(file.stem), cell.id):
        raise StoreError(f"{file} holds the recording of another load, {made.recording.position}", hint=_moved(file))
    return made


def _moved(file: Path) -> str:
    return f"it was copied or renamed: {_made_again_by(file)}"


def _made_again_by(file: Path) -> str:
    """What makes a file again that is of no use: a load is not resumed, and a capacity by the name of its own."""
    folder = next((folder for folder in file.parents if (folder / MANIFEST).is_file()), file.parent)
    with contextlib.suppress(OSError, ValidationError):
        if stamped(folder / MANIFEST) == "load":
            return "make the load again"
    resumed = f"redline run --resume {as_argument(folder)}" if folder.name == CAPACITY else "--resume"
    return f"move it away, and {resumed} makes it again"


def _impossible(recording: DuetRecording) -> str:
    """What no engine says in it, such as distributions that cannot be decoded; empty for nothing."""
    if recording.traffic is None:
        return ""
    targets, everyone = recording.traffic.targets, set(range(len(recording.cell_ids)))
    for block in recording.traffic.blocks:
        if {slice_.target for slice_ in block.slices} != everyone:
            return f"block {block.index} has no slice of one of the {len(everyone)} servers"
        for of in block.slices:
            if min(of.measured_ns, of.measured, of.completed, of.failed, of.end_ns - of.start_ns, *_known(of)) < 0:
                return f"block {block.index} has a number below 0"
    if not targets or len(targets) != len(recording.cell_ids):
        return f"it has {len(targets)} targets for {len(recording.cell_ids)} servers"
    try:
        for target in targets:
            Histogram.decode_all((target.response, target.service, target.lateness))
            Histogram.decode_all(request.response for request in target.requests)
    except ValueError as error:
        return str(error)
    return ""


def _targets(planned: PlannedDuet) -> tuple[str, ...]:
    """The cells of a duet, whose baseline is its control too."""
    return (*planned.cell_ids, planned.cell_ids[0])


def _known(of: DuetSlice) -> list[int]:
    return [ns for ns in of.cpu_ns if ns is not None]


def _lost_trial(planned: PlannedTrial, why: str, hint: str) -> Recording:
    return Recording(
        cell_id=planned.cell_id,
        round=planned.round,
        position=planned.position,
        seed=planned.seed,
        started_unix_ns=0,
        failure=Failure.of_unread(why, hint),
    )


def _lost_duet(planned: PlannedDuet, why: str, hint: str) -> DuetRecording:
    return DuetRecording(
        cell_ids=_targets(planned),
        round=planned.round,
        position=planned.position,
        seed=planned.seed,
        started_unix_ns=0,
        places=planned.places,
        failure=Failure.of_unread(why, hint),
    )
