"""The directories below some folders, and what a row of the listing shows of each: read once, and again if it changes.

A stamp says whether a directory is as it was: the times of its files, and whether somebody writes it.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from redline.document import format as fmt
from redline.document.blocks import line
from redline.errors import RedlineError
from redline.files import read_regular
from redline.model.limits import AnyReport
from redline.model.run import Kind
from redline.report.listing import Answered, ListedRun, outcome
from redline.storage.archive import stores_below
from redline.storage.reading import MOST_BYTES, too_large
from redline.storage.reports import read_report
from redline.storage.runs import VIEW, RunStore, capacity_store

_DIGITS = 16
"""Hex digits of a key: enough that no two directories share one."""
_PARTS = (
    *("", "run.json", "enough.json", VIEW, "recordings", "duets", "profiles", "sampled"),
    *("capacity", "capacity/run.json"),
)


class _SuiteGlance(BaseModel):
    name: str
    auto: object = None


class _PlanGlance(BaseModel):
    suite: _SuiteGlance
    trials: list[object] = []
    duets: list[object] = []
    profiled: list[object] = []
    sampled: list[object] = []


class Glance(BaseModel):
    """The part of a manifest that a row needs: hundreds of them are read at once."""

    kind: Kind = "run"
    created_unix_ns: int = Field(ge=0)
    plan: _PlanGlance


@dataclass(frozen=True)
class StoredPlace:
    """A directory of any kind below a folder, as it was when it was looked at."""

    store: RunStore
    key: str
    """Its name in addresses, which tell nothing of paths."""
    name: str
    going: bool
    changed_ns: int
    """The latest time of its files."""
    stamp: str

    @property
    def is_begun(self) -> bool:
        """Whether it has a manifest of its own, not only that of its capacity."""
        return self.store.exists


@dataclass
class Folders:
    """The folders that are shown. What was read of a directory is kept until its stamp changes."""

    paths: Sequence[Path]
    _glances: dict[str, tuple[str, Glance | str]] = field(default_factory=dict)
    _outcomes: dict[str, tuple[str, Answered]] = field(default_factory=dict)

    def places(self) -> dict[str, StoredPlace]:
        """All directories by key, as they are now."""
        found: dict[str, StoredPlace] = {}
        for folder in self.paths:
            for store in stores_below(folder):
                key = key_of(store.folder)
                if key not in found:
                    found[key] = _place(store, key, self._name(store.folder, folder))
        return found

    def rows(self, places: dict[str, StoredPlace], until_s: float) -> tuple[ListedRun, ...]:
        """A row for each, newest first. What is not known of it is read until this time of the monotonic clock."""
        newest = sorted(places.values(), key=lambda place: place.changed_ns, reverse=True)
        glances = {place.key: self._glance(place) for place in newest}
        newest.sort(key=lambda place: _begun_ns(place, glances[place.key]), reverse=True)
        return tuple(self._row(place, glances[place.key], until_s) for place in newest)

    def judged(self, place: StoredPlace, report: AnyReport) -> None:
        """Show the outcome of a report that was made just now in place of the stored one."""
        self._outcomes[place.key] = (place.stamp, outcome(report))

    def _glance(self, place: StoredPlace) -> Glance | str:
        stamp, glance = self._glances.get(place.key, ("", ""))
        if stamp != place.stamp:
            glance = _read_glance(place.store if place.is_begun else capacity_store(place.store.folder))
            self._glances[place.key] = (place.stamp, glance)
        return glance

    def _row(self, place: StoredPlace, glance: Glance | str, until_s: float) -> ListedRun:
        if isinstance(glance, str):
            return ListedRun(place.key, place.name, "", "unknown", "", line(glance), going=place.going)
        row = ListedRun(
            key=place.key,
            name=place.name,
            about=glance.plan.suite.name,
            kind=glance.kind,
            begun=fmt.instant(glance.created_unix_ns).removesuffix(" UTC"),
            going=place.going,
            compared=bool(glance.plan.trials or glance.plan.duets) and glance.kind != "search" and place.is_begun,
        )
        stamp, known = self._outcomes.get(place.key, ("", None))
        if stamp == place.stamp and known is not None and not place.going:
            return _with(row, known)
        if place.going or not os.path.lexists(place.store.folder / VIEW):
            return _with(row, _progress(place, glance))
        if time.monotonic() >= until_s:
            return _with(row, Answered(line(("reading …", "dim")), 0, ()))
        made = _stored_outcome(place.store)
        self._outcomes[place.key] = (place.stamp, made)
        return _with(row, made)

    def _name(self, folder: Path, above: Path) -> str:
        within = folder.relative_to(above)
        return str(folder if len(self.paths) > 1 or within == Path() else within)


def key_of(folder: str | os.PathLike[str]) -> str:
    """The key of a directory, which is the same whichever way leads to it."""
    return _digest(os.path.realpath(folder))


def _place(store: RunStore, key: str, name: str) -> StoredPlace:
    going = store.is_being_written or capacity_store(store.folder).is_being_written
    times = [*_times(str(store.folder))]
    return StoredPlace(store, key, name, going, max(times), _digest(repr((going, times))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def _times(folder: str) -> Iterator[int]:
    """The times at which the parts of a directory changed, in ns; 0 for what is not there.

    This runs every two seconds for hundreds of directories, maybe while something is measured: paths are texts.
    """
    for part in (*_PARTS, *_probes(folder)):
        try:
            yield os.stat(f"{folder}/{part}").st_mtime_ns  # noqa: PTH116
        except OSError:
            yield 0


def _probes(folder: str) -> list[str]:
    try:
        return sorted(f"probes/{name}" for name in os.listdir(f"{folder}/probes"))  # noqa: PTH208
    except OSError:
        return []


def _begun_ns(place: StoredPlace, glance: Glance | str) -> int:
    return place.changed_ns if isinstance(glance, str) else glance.created_unix_ns


def _read_glance(store: RunStore) -> Glance | str:
    """The manifest at a glance, or why it cannot be read."""
    file = store.folder / store.manifest_file
    try:
        content = read_regular(file, MOST_BYTES)
        glance = Glance.model_validate_json(content)
    except OSError as error:
        return f"{file.name} cannot be read: {error.strerror or error}"
    except ValidationError:
        return f"{file.name} is damaged, or of a later version"
    large = too_large(content)
    return f"{file.name} is damaged: {large}" if large else glance


def _stored_outcome(store: RunStore) -> Answered:
    try:
        return outcome(read_report(store.folder / VIEW))
    except RedlineError as error:
        return Answered(line(error.message), 0, ())
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a run, the others are listed
        return Answered(line(f"its {VIEW} cannot be shown: {type(error).__name__}: {error}"), 0, ())


def _with(row: ListedRun, made: Answered) -> ListedRun:
    return replace(row, answer=made.answer, more=made.more, grades=made.grades, state=made.state)


def _progress(place: StoredPlace, glance: Glance) -> Answered:
    """How far a directory is that is being measured, or that ended before it was judged."""
    if not place.is_begun:
        return Answered(line(("its capacity comes first", "dim")), 0, (), _state(going=place.going))
    folder, plan = place.store.folder, glance.plan
    if glance.kind == "search":
        done, text = sum(1 for _ in (folder / "probes").rglob("*.json")), "load"
        text = f"{fmt.count(done, text)} so far"
    else:
        done = len(place.store.positions())
        planned = sum(map(len, (plan.trials, plan.duets, plan.profiled, plan.sampled)))
        known = plan.suite.auto is None
        text = f"{done:,} of {fmt.count(planned, 'recording')}" if known else f"{fmt.count(done, 'recording')} so far"
    ended = "" if place.going else ", not judged: see its page"
    return Answered(line(f"{text}{ended}"), 0, (), _state(going=place.going))


def _state(*, going: bool) -> str:
    return "being measured:" if going else "not complete:"
