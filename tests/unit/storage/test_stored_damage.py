"""Whatever is stored is reported: a recording that cannot be used is a row with its reason, and the others count."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redline.cli.show import Terminal
from redline.document.blocks import Medium
from redline.errors import RedlineError
from redline.history.over_runs import SeenRun, build_history
from redline.history.sections import OUTLINE
from redline.model import Histogram, Metric, Report, Run
from redline.model.limits import AnyReport
from redline.render import RENDERERS, history_page, markdown, summary, terminal
from redline.running.histories import see_stored
from redline.running.views import report_of
from redline.storage.runs import RunStore
from tests.fakes.compared import compared_run
from tests.fakes.compared_runs import compared_within, two_compared
from tests.fakes.recordings import SATURATE, simulated_run
from tests.fakes.stored import kept
from tests.golden import FOLDER

Json = Any
LOCATED = Path("recordings"), Path("duets"), Path("probes")


def whole_run(folder: Path) -> Path:
    return kept(folder, simulated_run(trials=3, loads=(SATURATE,))).folder


def comparison(folder: Path) -> Path:
    return kept(folder, compared_run(starts=4)).folder


def search(folder: Path) -> Path:
    shutil.copytree(FOLDER / "search-1", folder)
    return folder


KINDS = {"run": whole_run, "comparison": comparison, "search": search}


def recordings_of(folder: Path) -> list[Path]:
    return sorted(file for part in LOCATED if (folder / part).is_dir() for file in (folder / part).rglob("*.json"))


def said_of(folder: Path) -> str:
    """All that every view says of a directory. Fails on any error but a refusal with its reason."""
    return "\n".join(views_of(folder).values())


def views_of(folder: Path) -> dict[str, str]:
    """The same by the format of the view."""
    store = RunStore(folder)
    report = report_of(store)
    views = {form: _rendered(form, report) for form in RENDERERS}
    shown = terminal.render(summary(report), Terminal())
    return {**views, "terminal": shown.plain if shown else "", "compared": "\n".join(_compared(store, report))}


def _rendered(form: str, report: AnyReport) -> str:
    try:
        return RENDERERS[form](report).decode()
    except RedlineError as refusal:  # a format of a comparison has none of a search
        return str(refusal)


def _compared(store: RunStore, report: AnyReport) -> list[str]:
    if not isinstance(report, Report):
        return []
    made: list[Callable[[], Any]] = [
        lambda: compared_within(store.run()),
        lambda: two_compared(store.run(), store.run(), anyway=True),
    ]
    said = []
    for compare in made:
        try:
            said.append(compare().model_dump_json())
        except RedlineError as refusal:
            said.append(str(refusal))
    seen = see_stored(store, lambda _: True)
    runs, aside = ([seen], []) if isinstance(seen, SeenRun) else ([], [seen])
    history = build_history("runs", runs, aside)
    said.append(markdown.render(OUTLINE.text(history, Medium.MARKDOWN)).decode())
    history_page(history)
    return said


def rewritten(file: Path, change: Callable[[Json], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def first_traffic(content: Json) -> Json:
    return content.get("traffic") or content["recording"]["traffic"]


def without_intervals(content: Json) -> None:
    traffic = first_traffic(content)
    for name in ("intervals", "blocks"):
        if name in traffic:
            traffic[name] = []


def repeated(content: Json) -> None:
    traffic = first_traffic(content)
    for name in ("intervals", "blocks"):
        if name in traffic:
            traffic[name] *= 2


def one_slice(content: Json) -> None:
    for block in first_traffic(content).get("blocks", ()):
        block["slices"] = block["slices"][:1]


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]), "is cut off"),
    "emptied": (lambda file: file.write_bytes(b""), "is empty"),
    "no JSON": (lambda file: file.write_bytes(b"\xff\xfe{"), "is damaged"),
    "no object": (lambda file: file.write_text("[]"), "should be an object"),
    "deep": (lambda file: file.write_text("[" * 100_000), "is damaged"),
    "a key dropped": (
        lambda file: rewritten(file, lambda content: content.pop("format") and content.clear()),
        "required",
    ),
    "not a number": (
        lambda file: file.write_text(file.read_text().replace('"seed": ', '"seed": NaN, "was": ')),
        "seed",
    ),
    "huge": (
        lambda file: file.write_text(
            file.read_text().replace('"started_unix_ns": ', '"started_unix_ns": 1' + "0" * 30)
        ),
        "larger than any measurement",
    ),
}


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        pytest.param(kind, damage, marks=[] if number % len(KINDS) == place else [pytest.mark.long])
        for number, damage in enumerate(DAMAGE)
        for place, kind in enumerate(KINDS)
    ],
)
def test_a_damaged_recording_is_named_in_every_view(kind: str, damage: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / kind)
    file = recordings_of(folder)[-1]
    spoil, why = DAMAGE[damage]
    spoil(file)
    views = views_of(folder)
    for form in ("json", "md", "html"):
        assert file.name in views[form], form
        assert why in views[form], form


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", [without_intervals, repeated, one_slice], ids=lambda damage: damage.__name__)
def test_an_odd_recording_is_reported(kind: str, damage: Callable[[Json], None], tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / kind)
    for file in recordings_of(folder)[-2:]:
        rewritten(file, damage)
    assert said_of(folder)


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_all_recordings_may_be_damaged(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / kind)
    for file in recordings_of(folder):
        file.write_bytes(b"")
    assert "is empty" in said_of(folder)


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_a_recording_of_another_trial_counts_for_none(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / kind)
    first, *_, last = recordings_of(folder)
    last.write_bytes(first.read_bytes())
    assert "holds the recording of another" in said_of(folder)


@pytest.mark.parametrize("place", [0, -1], ids=["the baseline", "the control"])
def test_a_recording_of_a_duet_of_other_servers_counts_for_none(place: int, tmp_path: Path) -> None:
    folder = KINDS["comparison"](tmp_path / "comparison")

    def of_another(content: Json) -> None:
        content["cell_ids"][place] = "another"

    rewritten(recordings_of(folder)[0], of_another)
    assert "holds the recording of another duet" in said_of(folder)


def test_a_distribution_that_is_damaged_spoils_its_trial_alone(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    file = recordings_of(folder)[0]
    whole = report_of(RunStore(folder))

    def spoil(content: Json) -> None:
        other = Histogram.of([1e6] * 3).encode()
        content["traffic"]["intervals"][0]["response"] = other[:20] + "AAAA" + other[24:]

    rewritten(file, spoil)
    report = report_of(RunStore(folder))
    assert isinstance(report, Report)
    assert isinstance(whole, Report)
    unused = [trial for cell in report.cells for trial in cell.trials if not trial.used]
    assert [trial.position for trial in unused] == [0]
    assert sum(len(cell.trials) for cell in report.cells) == sum(len(cell.trials) for cell in whole.cells)
    assert "recording-unread" in said_of(folder)


@pytest.mark.parametrize(("name", "kind"), [("enough.json", "run"), ("calibration.json", "comparison")])
def test_what_stands_beside_the_recordings_is_named(name: str, kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / kind)
    (folder / name).write_text("{")
    said = said_of(folder)
    assert name in said
    assert "What cannot be read" in said


def test_a_server_that_answers_nothing_leaves_the_others_their_ratios(tmp_path: Path) -> None:
    """And its own ratio is unknown, with the reason."""
    run = compared_run(starts=4)
    duets = []
    for duet in run.duets:
        assert duet.traffic is not None
        blocks = tuple(
            block.model_copy(
                update={
                    "slices": tuple(
                        each.model_copy(update={"measured": 0, "completed": 0, "cpu_ns": (0, 0, 0)})
                        if each.target == 1
                        else each
                        for each in block.slices
                    )
                }
            )
            for block in duet.traffic.blocks
        )
        duets.append(duet.model_copy(update={"traffic": duet.traffic.model_copy(update={"blocks": blocks})}))
    silent: Run = run.model_copy(update={"duets": tuple(duets)})
    folder = kept(tmp_path / "silent", silent).folder
    report = report_of(RunStore(folder))
    assert isinstance(report, Report)
    of_slices = (Metric.CPU_PER_REQUEST, Metric.THROUGHPUT)
    known = {comparison.metric: comparison.ratio for comparison in report.comparisons if comparison.metric in of_slices}
    assert known
    assert set(known.values()) == {None}
    assert "B gave no right answer in the slices that were measured" in said_of(folder)


def _places(value: Json, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values, of lists to the first few."""
    found = [at] if at else []
    if isinstance(value, dict):
        found += [way for key, own in value.items() for way in _places(own, (*at, key))]
    elif isinstance(value, list):
        found += [way for place, own in enumerate(value[:4]) for way in _places(own, (*at, place))]
    return found


def mutated(content: Json, rng: random.Random) -> None:
    """Change a value somewhere: drop it, empty, cut or repeat it, or put another number in its place."""
    way = rng.choice(_places(content))
    holder = content
    for key in way[:-1]:
        holder = holder[key]
    old = holder[way[-1]]
    if isinstance(old, list) and rng.random() < 0.8:
        holder[way[-1]] = rng.choice([[], old[:1], old * 2, old[1:], old[::-1]])
    elif rng.random() < 0.2:
        del holder[way[-1]]
    else:
        holder[way[-1]] = rng.choice([0, -5, 1, 9 * 10**18, 10**30, None, "", 1.5])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_disk_makes_of_a_recording_a_report_comes_out(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{kind} {seed}")
    folder = KINDS[kind](tmp_path / kind)
    for _ in range(3):
        file = rng.choice(recordings_of(folder))
        rewritten(file, lambda content: mutated(content, rng))
    assert said_of(folder)
