"""`builds: N`: every server built several times, rounds that take the builds in turn, and their report."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from redline.errors import BuildError
from redline.findings import judge_cell
from redline.launching.builds import Builds
from redline.model import DuetRecording, Finding, FindingKind, Recording
from redline.ports import BuildOutcome
from redline.stats import Trial
from redline.stats.builds import BUILDS_P, differing
from redline.suite import with_rounds
from tests.fakes.compared import compared_starts
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FACTS
from tests.fakes.servers.families import NOTED, Family
from tests.unit.findings.test_cell import CLOSED, trials
from tests.unit.running.test_duet import TEXT, plan_of

THREE = f"{TEXT}builds: 3\n"
WITH_ITS_PATH = f"{NOTED}; pwd > out"
IN_TURN = [0, 1, 2] * 3


def copies(family: Family, number: int, script: str = WITH_ITS_PATH) -> list[tuple[Builds, BuildOutcome]]:
    made = [Builds(family.catalogue, family.root / "cache", copy) for copy in range(number)]
    entry = family.entry(script)
    return [(each, each.build([entry], lambda _building: None, hash_outputs=True)) for each in made]


def test_each_build_is_made_once_in_a_folder_of_its_own(tmp_path: Path) -> None:
    family = Family(tmp_path)
    for _ in range(2):
        made = copies(family, 3)
        assert {outcome.hash_of("fake.one") for _, outcome in made} == {made[0][1].hash_of("fake.one")}
        standing = [builds.find(family.entry(WITH_ITS_PATH)) for builds, _ in made]
        assert [one.number for one in standing] == [0, 1, 2]
        assert standing[0].folder == family.folder
        assert [(one.folder / "out").read_text().strip() for one in standing] == [str(one.folder) for one in standing]
        assert len({one.outputs for one in standing}) == 3
        assert [len((one.folder / "count").read_text().splitlines()) for one in standing] == [1, 1, 1]


def test_a_changed_input_is_built_again_in_each_folder(tmp_path: Path) -> None:
    family = Family(tmp_path)
    before = copies(family, 2)[1][0].find(family.entry(WITH_ITS_PATH))
    (family.folder / "in.txt").write_text("other")
    (family.folder / "src/deep/more.txt").rename(family.folder / "src/deep/moved.txt")
    after = copies(family, 2)[1][0].find(family.entry(WITH_ITS_PATH))
    assert after.hash != before.hash
    assert (after.folder / "in.txt").read_text() == "other"
    assert [file.name for file in (after.folder / "src/deep").iterdir()] == ["moved.txt"]


def test_a_reproducible_build_gives_the_same_bytes(tmp_path: Path) -> None:
    family, script = Family(tmp_path), f"{NOTED}; echo same > out"
    assert len({builds.find(family.entry(script)).outputs for builds, _ in copies(family, 2, script)}) == 1


def test_an_input_outside_of_the_build_folder_is_refused(tmp_path: Path) -> None:
    family = Family(tmp_path)
    (family.catalogue / "shared.txt").write_text("")
    entry = family.entry(inputs=("in.txt", "../shared.txt"))
    outcome = Builds(family.catalogue, family.root / "cache", 1).build([entry], lambda _building: None)
    assert "cannot be built apart" in str(outcome.failures["fake.one"])


def test_a_server_of_which_one_build_fails_is_not_run() -> None:
    first, second = (
        BuildOutcome(hashes={"a": "1", "b": "2"}, took_ns={"a": 1}),
        BuildOutcome(hashes={"a": "1"}, took_ns={"a": 2}),
    )
    failed = BuildError("no", hint="none")
    second.failures["b"] = failed
    joined = first.joined(second)
    assert (joined.hashes, list(joined.failures), joined.took_ns) == ({"a": "1"}, ["b"], {"a": 3})


def test_rounds_take_the_builds_in_turn(tmp_path: Path) -> None:
    plan = with_rounds(plan_of(tmp_path, THREE), 6)
    subjects = [trial for trial in plan.trials if plan.cells[trial.cell_id].role == "subject"]
    assert all(trial.build_number == trial.round % 3 for trial in subjects)
    assert all(duet.build_number == duet.round % 3 for duet in plan.duets)
    ceilings = [trial for trial in plan.trials if plan.cells[trial.cell_id].role == "ceiling"]
    assert {trial.build_number for trial in ceilings} == {0}
    assert {step.build_number for step in plan_of(tmp_path).steps} == {0}


def test_chance_is_seldom_taken_for_a_difference_of_builds() -> None:
    rng = np.random.default_rng(1)
    alarms = sum(differing(list(rng.normal(0, 0.01, 9)), IN_TURN) is not None for _ in range(300))
    assert alarms <= 3 * BUILDS_P * 300
    found = differing([0.05 * build + rng.normal(0, 0.005) for build in IN_TURN], IN_TURN)
    assert found is not None
    assert found.between_sd == pytest.approx(0.05, rel=0.2)
    assert found.within_sd < 0.01


@pytest.mark.parametrize("builds", [[], [0, 0, 0, 0], [0, 1, 2], [0, 0, 0, 1]])
def test_of_single_starts_nothing_is_known(builds: list[int]) -> None:
    assert differing([float(each) for each in builds], builds) is None


def of_builds(outputs: Sequence[str], recordings: Sequence[Recording]) -> dict[FindingKind, Finding]:
    """The findings of trials that took three builds in turn."""
    made = []
    for build, recording in zip(IN_TURN, recordings, strict=True):
        server = FACTS.model_copy(update={"build_number": build, "outputs": outputs[build]})
        made.append(Trial(recording.model_copy(update={"server": server})))
    kinds = {"builds-differ", "builds-alike"}
    return {one.kind: one for one in judge_cell(CLOSED, made, planned=len(made)) if one.kind in kinds}


def test_builds_that_differ_are_a_finding_with_figures() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.003, len(IN_TURN))
    apart = [float(np.exp(0.05 * build + error)) for build, error in zip(IN_TURN, noise, strict=True)]
    (found,) = of_builds("abc", trials(apart)).values()
    assert found.kind == "builds-differ"
    assert "The 3 builds differ by 5" in found.message
    assert of_builds("abc", trials([float(np.exp(error)) for error in noise])) == {}
    (alike,) = of_builds("aaa", trials([float(np.exp(error)) for error in noise])).values()
    assert alike.message == "All 3 builds are identical."


def start(number: int, cost: float, outputs: str) -> DuetRecording:
    build = IN_TURN[number]
    server = FACTS.model_copy(update={"build_number": build, "outputs": outputs[build]})
    return simulated_duet(number, (1.0, cost)).model_copy(update={"servers": (server,) * 3})


@pytest.mark.parametrize(
    ("step", "outputs", "expected"),
    [(0.05, "abc", {"builds-differ"}), (0.0, "abc", set()), (0.0, "aaa", {"builds-alike"})],
)
def test_duets_say_how_builds_differ(step: float, outputs: str, expected: set[str]) -> None:
    starts = [start(number, 1 + step * IN_TURN[number], outputs) for number in range(9)]
    assert {each.kind for each in compared_starts(starts).findings if each.kind.startswith("builds")} == expected
