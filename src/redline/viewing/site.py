"""The addresses of `redline view`, and what is there: a listing, runs, their files, comparisons of two, the history.

All of them begin with a random token, which other users and other sites do not know. Only GET and HEAD are answered.
"""

import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path, PurePath
from typing import BinaryIO
from urllib.parse import parse_qs, quote, unquote

from redline import render as pages
from redline.analysis.comparing import ComparedRun, compare_two
from redline.analysis.environments import grave
from redline.document.blocks import Line, Page, Prose, Span, Watch, line
from redline.errors import RedlineError, UsageError
from redline.files import open_beneath
from redline.history.over_runs import SeenRun, build_history
from redline.history.page import page as history_page
from redline.model import Grade
from redline.model.history import LeftOut
from redline.render.html import ServedPage, render_served
from redline.report.compared_page import compared_page
from redline.report.listing import linked, listing_page, said_page
from redline.running.histories import see_stored
from redline.running.judging import judging_of
from redline.running.views import report_of
from redline.storage.archive import open_archive
from redline.viewing.folders import Folders, StoredPlace, key_of

NAMES = ("127.0.0.1", "localhost")
"""The hosts that a browser may ask for. Another name that leads here is another site's."""
_NOTHING = "default-src 'none'"
_PATIENCE_S = 0.8
"""How long a page takes to read what is not known yet, before it shows what it has."""
_SHARE = 10
"""A run that is being measured is judged for at most one part in so many of the time: judging takes its machine's."""
_EVERY_MS = 2000
"""How often a page asks whether there is something new."""
_SELDOM = 50
"""A page asks so seldom that answering takes at most one part in so many of a core."""
_MOST_BYTES = 128 << 20
"""The pages that are kept."""
_TEXTS = {".json": "application/json", ".csv": "text/csv", ".yaml": "text/plain", ".txt": "text/plain"}


@dataclass(frozen=True)
class Answer:
    """What a request gets. A `file` is sent, and closed, by whoever sends the answer."""

    status: HTTPStatus
    content: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    policy: str = _NOTHING
    fields: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None

    @property
    def headers(self) -> dict[str, str]:
        """All fields of the answer but its length."""
        return {
            "Content-Type": self.kind,
            "Content-Security-Policy": f"{self.policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            **self.fields,
        }


@dataclass(frozen=True)
class _KeptPage:
    """A page that was made from stamps, and from when on it is made anew although its run goes on."""

    stamp: str
    page: ServedPage
    again_s: float = 0.0


class Site:
    """The folders as a site. Threads may ask it at the same time; one of them at a time judges."""

    def __init__(self, folders: Sequence[Path], token: str | None = None) -> None:
        self.folders = Folders(folders)
        self.token = token or secrets.token_urlsafe(24)
        self._listing, self._judging = threading.Lock(), threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], _KeptPage] = OrderedDict()
        self._seen: dict[str, tuple[str, SeenRun | LeftOut]] = {}

    def answer(self, method: str, target: str, host: str) -> Answer:
        """What a request for this target gets; `host` is its field of that name. Raises nothing."""
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, fields={"Allow": "GET, HEAD"})
        path, _, query = target.partition("?")
        first, *names = path.removeprefix("/").split("/")
        known = secrets.compare_digest(first.encode("utf-8", "replace"), self.token.encode())
        if not known or not _is_ours(host) or not path.startswith("/"):
            return Answer(HTTPStatus.FORBIDDEN)
        try:
            return self._at(names, query)
        except RedlineError as error:
            return _served(said_page("This cannot be shown", error.message, error.hint, _home(names)))
        except OSError as error:
            message = f"a file cannot be read: {error.strerror or error}"
            return _served(said_page("This cannot be shown", message, "see what is there", _home(names)))
        except ValueError as error:  # a histogram is decoded when it is first asked
            message = f"its recordings are damaged: {error}"
            return _served(said_page("This cannot be shown", message, "see: redline report DIR", _home(names)))

    def _at(self, names: list[str], query: str) -> Answer:
        began_s = time.thread_time()
        match names:
            case []:
                answer = _moved(f"/{self.token}/")
            case [""]:
                answer = _served(self._index())
            case ["state"]:
                answer = _state(self._index_stamp(), began_s, going=True)
            case ["history", ""]:
                answer = self._history()
            case ["compare"]:
                answer = self._chosen(query)
            case ["compare", base, other, ""]:
                answer = self._compared(base, other, anyway=False)
            case ["compare", base, other, "anyway", ""]:
                answer = self._compared(base, other, anyway=True)
            case ["run", key, *rest] if place := self.folders.places().get(key):
                answer = self._of_run(place, rest, began_s)
            case _:
                answer = _missing()
        return answer

    def _of_run(self, place: StoredPlace, rest: list[str], began_s: float) -> Answer:
        match rest:
            case []:
                return _moved(f"{place.key}/")
            case [""]:
                return _sent(self._run_page(place))
            case ["state"]:
                return _state(self._run_stamp(place), began_s, going=place.going)
            case _:
                return _file(place.store.folder, rest)

    def _index(self) -> Page:
        """All runs, as far as they are read in a short time; the page asks for the others."""
        with self._listing:
            places = self.folders.places()
            rows = self.folders.rows(places, time.monotonic() + _PATIENCE_S)
        followed = sum(row.kind != "search" for row in rows) > 1
        names = [f"{folder}" for folder in self.folders.paths]
        return listing_page(rows, names, Watch("state", _digest(repr(rows))), followed=followed)

    def _index_stamp(self) -> str:
        with self._listing:
            return _digest(repr(self.folders.rows(self.folders.places(), time.monotonic() + _PATIENCE_S)))

    def _run_page(self, place: StoredPlace) -> ServedPage:
        with self._judging:
            kept = self._kept.get(("run", place.key))
            if kept and kept.stamp == self._run_stamp(place):
                return kept.page
            began_s = time.monotonic()
            made = self._made(place)
            took_s = time.monotonic() - began_s
            page = render_served(linked(made, place.name, Watch("state", place.stamp), going=place.going))
            self._keep(("run", place.key), _KeptPage(place.stamp, page, time.monotonic() + _SHARE * took_s))
            return page

    def _made(self, place: StoredPlace) -> Page:
        """The page of a run as `redline report` makes it, or why there is none yet."""
        if not place.is_begun:
            first = "its capacity is measured first" if place.going else "it ended while its capacity was measured"
            return said_page(place.name, first, "this page shows it as soon as there is more")
        try:
            report = report_of(place.store, keeps=False)
        except RedlineError as error:
            if not place.going:
                raise
            return said_page(place.name, f"nothing can be judged yet: {error.message}", "it is being measured")
        self.folders.judged(place, report)
        return pages.page(report)

    def _run_stamp(self, place: StoredPlace) -> str:
        """The stamp of what is shown of a run: the last page's while that may not be made anew yet."""
        kept = self._kept.get(("run", place.key))
        resting = kept is not None and place.going and time.monotonic() < kept.again_s
        return kept.stamp if kept is not None and resting else place.stamp

    def _chosen(self, query: str) -> Answer:
        keys = parse_qs(query).get("run", [])
        places = self.folders.places()
        known = [key for key in dict.fromkeys(keys) if key in places]
        if len(known) != 2:
            hint = "go back, and tick two of them"
            said = f"two runs are compared, and {len(known)} {'is' if len(known) == 1 else 'are'} ticked"
            return _served(said_page("Compare two runs", said, hint, _home([""])))
        base, other = sorted(known, key=lambda key: places[key].store.manifest().created_unix_ns)
        return _moved(f"compare/{base}/{other}/")

    def _compared(self, base: str, other: str, *, anyway: bool) -> Answer:
        places = self.folders.places()
        if base not in places or other not in places:
            return _missing()
        pair = (places[base], places[other])
        stamp = f"{pair[0].stamp} {pair[1].stamp}"
        key = ("compare", base, other, str(anyway))
        with self._judging:
            kept = self._kept.get(key)
            if kept is None or kept.stamp != stamp:
                kept = _KeptPage(stamp, render_served(_comparison(*pair, anyway=anyway)))
                self._keep(key, kept)
        return _sent(kept.page)

    def _history(self) -> Answer:
        """The history, or how many of its runs are read: then the browser asks again."""
        until_s = time.monotonic() + _PATIENCE_S
        with self._judging:
            places = self.folders.places()
            stamp = _digest(repr(sorted((place.key, place.stamp) for place in places.values())))
            kept = self._kept.get(("history",))
            if kept is not None and kept.stamp == stamp:
                return _sent(kept.page)
            archives = [open_archive(folder) for folder in self.folders.paths if folder.is_dir()]
            stores = {key_of(store.folder): store for archive in archives for store in archive.runs}
            read = False
            seen: list[SeenRun | LeftOut] = []
            for number, (key, store) in enumerate(stores.items()):
                before, known = self._seen.get(key, ("", None))
                now = places[key].stamp if key in places else ""
                if known is None or before != now:
                    if read and time.monotonic() > until_s:  # one at least, so that it comes to an end
                        return _reading(number, len(stores))
                    read = True
                    known = see_stored(store, lambda _: True)
                    self._seen[key] = (now, known)
                seen.append(known)
            runs = [run for run in seen if isinstance(run, SeenRun)]
            left_out = {key_of(left.folder): left for archive in archives for left in archive.left_out}
            aside = [*left_out.values(), *(run for run in seen if isinstance(run, LeftOut))]
            made = history_page(build_history(", ".join(map(str, self.folders.paths)), runs, aside))
            trail = (Span("all runs", link="../"),)
            page = render_served(replace(made, head=replace(made.head, trail=trail)))
            self._keep(("history",), _KeptPage(stamp, page))
        return _sent(page)

    def _keep(self, key: tuple[str, ...], kept: _KeptPage) -> None:
        """Keep a page, and forget the oldest of more than are kept."""
        self._kept.pop(key, None)
        self._kept[key] = kept
        while len(self._kept) > 1 and sum(len(kept.page.content) for kept in self._kept.values()) > _MOST_BYTES:
            self._kept.popitem(last=False)


def _comparison(base: StoredPlace, other: StoredPlace, *, anyway: bool) -> Page:
    """What `redline compare` says of two runs. Raises RedlineError where it says nothing."""
    pair = (base, other)
    for place in pair:
        if not place.is_begun or place.store.kind == "search":
            raise UsageError(f"{place.name} has no levels to compare", hint="tick two runs, or two loads")
    runs = [place.store.run() for place in pair]
    up = "../" * (4 if anyway else 3)
    links = [(Span(" · "), Span(place.name, link=f"{up}run/{place.key}/")) for place in pair]
    trail = (Span("all runs", link=up), *links[0], *links[1])
    differing = grave(*(run.manifest.environment for run in runs))
    try:
        first, second = (
            ComparedRun(run, judging_of(place.store, keeps=False)) for run, place in zip(runs, pair, strict=True)
        )
        result = compare_two(first, second, anyway=anyway)
    except UsageError as error:
        refused = said_page("These runs are not compared", error.message, error.hint, trail)
        if not differing or anyway or not all(run.manifest.plan.trials for run in runs):
            return refused
        nevertheless = Prose(((Span("Compare them nevertheless", link="anyway/"),),))
        section = refused.sections[0]
        return replace(refused, sections=(replace(section, blocks=(*section.blocks, nevertheless)),))
    going = [
        f"{place.name} is still being measured: only what it has so far was compared" for place in pair if place.going
    ]
    page = compared_page(result, tuple(line(("! ", Grade.WARN), text) for text in going))
    return replace(page, head=replace(page.head, trail=trail))


def _home(names: Sequence[str]) -> Line:
    """A link from the address with these names below the token to the listing."""
    return (Span("all runs", link="../" * (len(names) - 1) or "./"),)


def _is_ours(host: str) -> bool:
    name, _, port = host.partition(":")
    return name.lower() in NAMES and (not port or port.isdecimal())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _served(page: Page) -> Answer:
    return _sent(render_served(page))


def _sent(page: ServedPage) -> Answer:
    return Answer(HTTPStatus.OK, page.content, "text/html; charset=utf-8", page.policy)


def _state(stamp: str, began_s: float, *, going: bool) -> Answer:
    """What a page asks: the stamp of what there is, and in how many ms to ask again, if it may change.

    `began_s` is the time of this thread when it began to find out.
    """
    again_ms = max(_EVERY_MS, round(_SELDOM * 1e3 * (time.thread_time() - began_s)))
    value = {"stamp": stamp, "again_ms": again_ms if going else None}
    return Answer(HTTPStatus.OK, json.dumps(value).encode(), "application/json")


def _moved(to: str) -> Answer:
    return Answer(HTTPStatus.SEE_OTHER, fields={"Location": to})


def _missing() -> Answer:
    return Answer(HTTPStatus.NOT_FOUND, b"there is nothing here: the listing may have it under another address\n")


def _reading(done: int, of: int) -> Answer:
    page = said_page("History", f"{done:,} of {of:,} runs are read", "this page asks again by itself", _home(["", ""]))
    return replace(_served(page), fields={"Refresh": "0"})


def _file(folder: Path, names: Sequence[str]) -> Answer:
    """A file of a run. Only plain texts are shown; a page of a profiler is saved, since its scripts may do anything."""
    plain = [unquote(name) for name in names]
    try:
        file = open_beneath(folder, plain)
    except OSError:
        return _missing()
    kind = _TEXTS.get(PurePath(plain[-1]).suffix)
    if kind is None:
        saved = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(plain[-1], safe='')}"}
        return Answer(HTTPStatus.OK, kind="application/octet-stream", fields=saved, file=file)
    return Answer(HTTPStatus.OK, kind=f"{kind}; charset=utf-8", file=file)
