"""Whatever the disk makes of a stored search, its report comes out: what cannot be is left out, and says why."""

import json
import random
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from redline.errors import StoreError
from redline.limits import judged_search as judging
from redline.limits.judged_search import judged_search
from redline.limits.report import limit_report
from redline.model import Cell, Manifest
from redline.model.limits import LimitReport
from redline.model.search import ProbeRecording
from redline.render import RENDERERS
from redline.running.views import search_report
from redline.storage.reading import too_large
from redline.storage.runs import RunStore
from tests.golden import FOLDER

Json = Any
Way = tuple[str | int, ...]
GOLDEN = RunStore(FOLDER / "search-1")
ODD: tuple[Json, ...] = (
    0,
    1,
    -5,
    1.5,
    1e-300,
    10**12,
    9 * 10**18,
    None,
    "",
    "dropped",
    "empty",
    "twice",
    "first",
    "back",
)


def asked() -> tuple[Manifest, Cell]:
    manifest = GOLDEN.manifest()
    return manifest, next(cell for cell in manifest.plan.cells.values() if GOLDEN.probes(cell))


def short(cell: Cell) -> list[str]:
    """A load of each phase, as it is stored: few, since every change is judged anew."""
    texts = [file.read_text() for file in sorted((GOLDEN.folder / "probes" / cell.slug).iterdir())]
    return [*texts[:4], *texts[-2:]]


def ways(value: Json, at: Way = ()) -> Iterator[Way]:
    """The ways to all values."""
    if at:
        yield at
    if isinstance(value, dict):
        yield from chain.from_iterable(ways(own, (*at, key)) for key, own in value.items())
    elif isinstance(value, list):
        yield from chain.from_iterable(ways(own, (*at, place)) for place, own in enumerate(value))


def field(way: Way) -> Way:
    """The same for all values of a list."""
    return tuple(key for key in way if isinstance(key, str))


def changed(text: str, way: Way, odd: Json) -> bytes:
    """A recording with an odd value in a place."""
    content = holder = json.loads(text)
    for key in way[:-1]:
        holder = holder[key]
    old = holder[way[-1]]
    if odd == "dropped":
        del holder[way[-1]]
    elif odd in ("empty", "twice", "first", "back"):
        if isinstance(old, list):
            holder[way[-1]] = {"empty": [], "twice": old * 2, "first": old[:1], "back": old[::-1]}[odd]
    else:
        holder[way[-1]] = odd
    return json.dumps(content).encode()


def changes(texts: list[str], seed: int) -> list[tuple[int, Way, Json]]:
    """Every field of every load with every odd value, at a seeded place of each list, in a seeded order."""
    rng, made = random.Random(seed), list[tuple[int, Way, Json]]()
    for at, text in enumerate(texts):
        by_field: dict[Way, list[Way]] = {}
        for way in ways(json.loads(text)):
            by_field.setdefault(field(way), []).append(way)
        made += [(at, rng.choice(same), odd) for same in by_field.values() for odd in ODD]
    return rng.sample(made, len(made))


def reported(manifest: Manifest, cell: Cell, loads: list[ProbeRecording]) -> LimitReport:
    report = limit_report(manifest, {cell.id: loads})
    for form in ("json", "csv", "md"):
        assert RENDERERS[form](report)
    return report


def check(seed: int, tries: int) -> None:
    """Judge seeded changes. What is judged, or left out with its reason, has all other loads beside it."""
    manifest, cell = asked()
    texts = short(cell)
    whole = [ProbeRecording.model_validate_json(text) for text in texts]
    probes = len(reported(manifest, cell, whole).cells[0].probes)
    judged = 0
    for at, way, odd in changes(texts, seed)[:tries]:
        content = changed(texts[at], way, odd)
        if too_large(content):
            continue
        try:
            load = ProbeRecording.model_validate_json(content)
        except ValueError:
            continue
        report = reported(manifest, cell, [*whole[:at], load, *whole[at + 1 :]])
        assert len(report.cells[0].probes) >= probes - 1, (at, way, odd)
        judged += 1
    assert judged > tries // 5


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_field_holds_a_report_comes_out(seed: int) -> None:
    check(seed, 25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 10))
def test_whatever_any_field_holds_a_report_comes_out(seed: int) -> None:
    check(seed, 1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN.folder, tmp_path / "search"))


def spoilt(folder: Path, number: int, **values: Json) -> Path:
    """The file of a load whose recording gets other values."""
    (file,) = folder.glob(f"probes/*/{number:04d}.json")
    content = json.loads(file.read_text())
    content["recording"] |= values
    file.write_text(json.dumps(content))
    return file


def test_a_load_with_a_negative_round_is_left_out_and_named_and_the_others_count(folder: Path) -> None:
    whole = search_report(RunStore(folder))
    file = spoilt(folder, 3, round=-5)
    report = search_report(RunStore(folder))
    (said,) = report.unread
    assert f"{file.parent.name}/{file.name} holds what cannot be: start: " in said
    assert len(report.cells[0].probes) == len(whole.cells[0].probes) - 1
    assert all(probe in whole.cells[0].probes for probe in report.cells[0].probes[:1])
    for form in ("json", "md", "html"):
        assert file.name in RENDERERS[form](report).decode()


@pytest.mark.parametrize("values", [{"position": 7}, {"position": -1}, {"position": 10**12}, {"cell_id": "other"}])
def test_a_load_of_another_place_is_not_used(folder: Path, values: dict[str, Json]) -> None:
    file = spoilt(folder, 3, **values)
    (said,) = search_report(RunStore(folder)).unread
    assert f"{file} holds the recording of another load" in said


def test_loads_may_be_missing_repeated_or_out_of_order() -> None:
    manifest, cell = asked()
    whole = [ProbeRecording.model_validate_json(text) for text in short(cell)]
    for loads in (whole[2:], whole[::-1], whole * 2, whole[-1:], whole[:1] * 30, []):
        reported(manifest, cell, loads)


@pytest.mark.parametrize("most", [2, 4, 5])
def test_loads_that_do_not_fit_those_before_them_are_left_out(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """As when two loads contradict each other in a way that no search knows."""
    manifest, cell = asked()
    whole = [ProbeRecording.model_validate_json(text) for text in short(cell)]
    real = judging.search_state

    def refusing(manifest: Manifest, cell: Cell, made: Any, before: Any = ()) -> Any:
        if len(made) > most:
            raise ZeroDivisionError("division by zero")
        return real(manifest, cell, made, before)

    monkeypatch.setattr(judging, "search_state", refusing)
    judged = judged_search(manifest, cell, whole)
    assert len(judged.unused) == len(whole) - most
    for load, said in zip(whole[most:], judged.unused, strict=True):
        assert said.startswith(f"{load.stored_as(cell)} holds what cannot be, or is misjudged: ZeroDivisionError: ")


def test_loads_of_which_most_do_not_fit_end_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, cell = asked()
    whole = [ProbeRecording.model_validate_json(text) for text in short(cell)] * 2
    monkeypatch.setattr(judging._SearchJudge, "why_not", lambda _self, made: "does not fit" if len(made) > 3 else "")
    usable, said = judging._SearchJudge(manifest, cell, ()).usable(tuple(whole))
    assert len(usable) == 3
    assert said[-1].endswith("and what follows it is not used")


def test_a_search_whose_task_cannot_be_used_is_unknown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_asked: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(judging, "search_state", refuse)
    report = reported(*asked(), [])
    (found,) = report.cells
    assert (found.ended, found.limits) == ("broken", ())
    assert "what was asked holds what cannot be, or is misjudged: ZeroDivisionError: " in found.reason
    assert report.unread


@pytest.mark.parametrize(
    ("way", "odd", "says"),
    [
        (("plan", "trials", 0, "cell_id"), "other", "has no cell `other`"),
        (("search",), "dropped", "does not say what is searched"),
    ],
)
def test_a_task_that_contradicts_itself_is_refused_by_its_place(folder: Path, way: Way, odd: Json, says: str) -> None:
    file = folder / "run.json"
    file.write_bytes(changed(file.read_text(), way, odd))
    with pytest.raises(StoreError, match=rf"run\.json: .*{says}"):
        search_report(RunStore(folder))
