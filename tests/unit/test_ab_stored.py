"""The directory of a comparison by `redline ab`: what is kept, what is judged again, and what can be resumed."""

import errno
import json
import math
import os
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import AbFlags, app
from redline.cli.commands import ab
from redline.errors import DriveError, NotStoredError, StoreError, UsageError
from redline.model import DuetRecording, Failure, Metric
from redline.model.catalogue import Revision
from redline.model.duet import AbPlan, AbReport, CheckoutPair
from redline.ports import Placement
from redline.running.duet import DuetLogs, is_over, run_duet
from redline.running.record import Tools
from redline.storage.comparisons import ComparisonStore
from redline.storage.runs import stored_json
from tests import golden
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FakeDriver, FakeLauncher
from tests.fakes.recordings import simulated_environment

S = 1_000_000_000
CHECKOUT = CheckoutPair(
    repository="/home/user/items",
    revisions=(Revision(name="main", commit="1" * 40), Revision(name="HEAD", commit="2" * 40)),
    build="make",
    below="server",
)


def planned(a: str = "./old --port {port}", b: str = "./new --port {port}", lasts_s: int = 30) -> AbPlan:
    duet = ab.read_plan(AbFlags(a=a, b=b), lasts_s * S)
    return AbPlan(
        created_unix_ns=S,
        command="redline ab …",
        a=a,
        b=b,
        metric=Metric.CPU_PER_REQUEST,
        duet=duet,
        environment=simulated_environment(),
    )


def kept(folder: Path, plan: AbPlan, recordings: int = 6) -> ComparisonStore:
    """A store with so many starts, each of 5 s."""
    store = ComparisonStore(folder)
    store.create(plan)
    for number in range(recordings):
        store.save_duet(simulated_duet(number, (1.0, 1.05), warmup=30), plan.duet.cells[0])
    return store


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(autouse=True)
def _one_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ab, "duet_environment", simulated_environment)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Servers and an engine that take no time."""
    driver = FakeDriver([])
    tools = Tools(FakeLauncher([]), driver, lambda _server: (), Placement())
    monkeypatch.setattr(ab, "duet_tools", lambda: tools)
    return driver


def test_the_stored_form_stays_readable(tmp_path: Path) -> None:
    plan = planned()
    cells = tuple(
        cell.model_copy(
            update={
                "variant": cell.variant.model_copy(
                    update={"entry": cell.variant.catalogued.model_copy(update={"family_folder": "/home/user"})}
                )
            }
        )
        for cell in plan.duet.cells
    )
    stored = plan.model_copy(
        update={"duet": plan.duet.model_copy(update={"cells": cells}), "checkout": CHECKOUT, "files": {"/x": "ab12"}}
    )
    golden.check("ab.json", stored_json(stored))
    assert AbPlan.model_validate_json((golden.FOLDER / "ab.json").read_bytes()) == stored
    store = kept(tmp_path / "kept", stored)
    assert store.plan() == stored
    assert store.duets() == tuple(simulated_duet(number, (1.0, 1.05), warmup=30) for number in range(6))


def test_it_is_judged_from_what_is_stored(tmp_path: Path) -> None:
    store = kept(tmp_path / "kept", planned())
    said = redline("report", store.folder, "--json").stdout
    report = AbReport.model_validate_json(said)
    assert (report.starts, report.seconds, report.interrupted) == (6, 30, False)
    assert redline("judge", store.folder, "--json").stdout == said
    before = redline("judge", store.folder)
    assert before.stdout == redline("report", store.folder).stdout
    assert "it has no results.json" in before.stderr
    redline("judge", store.folder, "--write")
    assert store.written_report() == report
    assert "has the same answer" in redline("judge", store.folder).stderr
    store.write("results.json", stored_json(report.model_copy(update={"starts": 99})))
    assert "results.json said: B takes" in redline("judge", store.folder).stderr


def test_what_is_too_little_or_failed_has_no_answer(tmp_path: Path) -> None:
    store = kept(tmp_path / "kept", planned(), recordings=0)
    with pytest.raises(StoreError, match="too little was measured") as caught:
        redline_raises("report", store.folder)
    assert "ab --resume" in caught.value.hint
    store.save_duet(failed(simulated_duet(0)), store.plan().duet.cells[0])
    with pytest.raises(DriveError, match="B exited") as ended:
        redline_raises("report", store.folder)
    assert ended.value.hint == "see why"


def redline_raises(*args: str | Path) -> None:
    raised = redline(*args).exception
    assert raised is not None
    raise raised


@pytest.mark.parametrize(("starts", "interrupted"), [(2, True), (5, True), (6, False)])
def test_it_is_interrupted_until_its_time_was_measured(tmp_path: Path, starts: int, interrupted: bool) -> None:
    store = kept(tmp_path / "kept", planned(), starts)
    assert json.loads(redline("report", store.folder, "--json").stdout)["interrupted"] == interrupted


def test_only_starts_that_ended_count() -> None:
    plan, whole = planned(lasts_s=1).duet, [simulated_duet(number) for number in range(3)]
    assert is_over(plan, whole)
    assert not is_over(plan, whole[:2])
    assert not is_over(plan, [*whole[:2], cut(whole[2])])
    once = plan.model_copy(update={"once": True})
    assert is_over(once, whole[:1])
    assert not is_over(once, [cut(whole[0])])


def cut(recording: DuetRecording) -> DuetRecording:
    assert recording.traffic is not None
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"ended": "interrupted"})})


def failed(recording: DuetRecording) -> DuetRecording:
    failure = Failure(stage="launch", kind="start", message="B exited", hint="see why")
    return recording.model_copy(update={"traffic": None, "failure": failure})


def test_starts_that_are_missing_failed_or_cut_are_made_again(tmp_path: Path) -> None:
    plan = planned().duet
    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement())
    before = [simulated_duet(0), simulated_duet(2), cut(simulated_duet(3)), failed(simulated_duet(4))]
    made = []
    for recording in run_duet(plan, tools, DuetLogs(tmp_path, are_kept=True), lambda _start, _block: None, before):
        made.append(recording.position)
        if len(made) == 4:
            break
    assert made == [1, 3, 4, 5]


def test_it_is_resumed_until_its_time_is_measured(tmp_path: Path, fakes: FakeDriver) -> None:
    store = kept(tmp_path / "kept", planned(lasts_s=1), 2)
    done = redline("ab", "--resume", store.folder, "--json")
    assert (done.exit_code, json.loads(done.stdout)["starts"]) == (0, 3)
    assert [each.position for each in store.duets()] == [0, 1, 2]
    assert len(fakes.duets) == 1
    assert fakes.duets[0].drive.log == store.logs / "0002" / "engine.log"
    assert store.written_report() == AbReport.model_validate_json(done.stdout)


def test_a_full_disk_keeps_the_starts_so_far(
    tmp_path: Path, fakes: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, sync = kept(tmp_path / "kept", planned(), 4), os.fsync

    def refuse(descriptor: int) -> None:
        if fakes.duets:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(StoreError, match="No space left") as caught:
            redline_raises("ab", "--resume", store.folder)
    assert "the disk is full" in caught.value.hint
    assert [each.position for each in store.duets()] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "was measured for all of its 30.0 s"),
        (("--for", "20s"), "--for 20s is less than the 30.0 s"),
        (("--for", "soon"), "--for: "),
        (("--seed", "2", "-o", "x"), "takes no --seed, -o"),
        (("./old --port {port}",), "takes no A"),
    ],
)
def test_what_cannot_be_resumed_so(tmp_path: Path, flags: tuple[str, ...], says: str) -> None:
    store = kept(tmp_path / "kept", planned())
    with pytest.raises(UsageError) as refused:
        redline_raises("ab", *flags, "--resume", store.folder)
    assert says in str(refused.value)


def test_servers_behind_urls_have_one_start(tmp_path: Path) -> None:
    plan = planned("http://127.0.0.1:1/", "http://127.0.0.1:1/")
    store = kept(tmp_path / "kept", plan, 1)
    with pytest.raises(UsageError, match=r"was measured for all of its 30\.0 s"):
        redline_raises("ab", "--resume", store.folder)
    with pytest.raises(UsageError, match="servers behind URLs have one start"):
        redline_raises("ab", "--resume", store.folder, "--for", "60s")


def test_an_interrupted_start_of_servers_behind_urls_is_made_again(tmp_path: Path, fakes: FakeDriver) -> None:
    store = kept(tmp_path / "kept", planned("http://127.0.0.1:1/", "http://127.0.0.1:2/"), 0)
    store.save_duet(cut(simulated_duet(0)), store.plan().duet.cells[0])
    done = redline("ab", "--resume", store.folder, "--json")
    assert (done.exit_code, json.loads(done.stdout)["interrupted"]) == (0, False)
    assert [each.traffic is not None and each.traffic.ended for each in store.duets()] == ["complete"]
    assert len(fakes.duets) == 1


def test_a_server_that_changed_is_not_resumed(tmp_path: Path) -> None:
    program, jar = tmp_path / "old", tmp_path / "app.jar"
    program.write_text("#!/bin/sh")
    jar.write_text("classes")
    plan = planned("./old -jar app.jar {port}", "sh ./new {port}")
    plan = plan.model_copy(update={"files": ab._files(plan.duet)})
    assert {str(program), str(jar)} <= plan.files.keys()
    store = kept(tmp_path / "kept", plan, 2)
    jar.write_text("other classes")
    with pytest.raises(UsageError, match=r"app\.jar is not what it was when this comparison began"):
        redline_raises("ab", "--resume", store.folder)


def test_a_directory_of_another_kind_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(NotStoredError, match="holds no run"):
        redline_raises("ab", "--resume", tmp_path)


def test_a_directory_that_holds_a_comparison_is_for_nothing_else(tmp_path: Path) -> None:
    store = kept(tmp_path / "kept", planned())
    with pytest.raises(StoreError, match="already holds a comparison") as caught:
        redline_raises("ab", "./old {port}", "./new {port}", "-o", store.folder)
    assert "redline ab --resume" in caught.value.hint
    with pytest.raises(UsageError, match="holds a comparison, which has no html"):
        redline_raises("report", store.folder, "--format", "html")
    with pytest.raises(StoreError, match="holds a comparison of two servers, and no run"):
        redline_raises("compare", store.folder)


def test_a_place_that_cannot_be_written_is_refused_first(tmp_path: Path, fakes: FakeDriver) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        redline_raises("ab", "./old {port}", "./new {port}", "-o", tmp_path / "file" / "kept")
    assert caught.value.hint == "a file stands where a directory is needed: choose another place with -o DIR"
    assert not fakes.duets


def test_nothing_is_kept_unless_a_place_is_named(
    tmp_path: Path, fakes: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    done = redline("ab", "./old {port}", "./new {port}", "--for", "1ms", "--json")
    assert done.exit_code == 0
    assert fakes.duets
    assert [file.name for file in tmp_path.rglob("*")] == ["tmp"]


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), 0),
        (("--fail-on", "slower"), 1),
        (("--fail-on", "slower", "--threshold", "2%"), 1),
        (("--fail-on", "slower", "--threshold", "90%"), 0),
        (("--fail-on", "inconclusive"), 3),
    ],
)
def test_cold_servers_that_leave_no_verdict_are_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], code: int
) -> None:
    def start(number: int) -> DuetRecording:
        cold = lambda block, server: 0.3 * math.exp(-block / 25) if server == 1 else 0.0  # noqa: E731
        return simulated_duet(number, (1.0, 1.0), warmup=30, cold=cold)

    store = kept(tmp_path / "kept", planned(), 0)
    for number in range(5):
        store.save_duet(start(number), store.plan().duet.cells[0])

    def measure(*_args: object, **_kwargs: object) -> bool:
        store.save_duet(start(5), store.plan().duet.cells[0])
        return False

    monkeypatch.setattr(ab, "_measure", measure)
    done = redline("ab", "--resume", store.folder, *flags, "--json")
    assert (json.loads(done.stdout)["verdict"], done.exit_code) == ("inconclusive", code)


@pytest.mark.parametrize(("tolerated", "code"), [((), 3), (("--threshold", "2%"), 3), (("--threshold", "20%"), 0)])
def test_only_differences_beyond_the_threshold_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tolerated: tuple[str, ...], code: int
) -> None:
    store = kept(tmp_path / "kept", planned(), 5)

    def measure(*_args: object, **_kwargs: object) -> bool:
        store.save_duet(simulated_duet(5, (1.0, 1.05), warmup=30), store.plan().duet.cells[0])
        return False

    monkeypatch.setattr(ab, "_measure", measure)
    done = redline("ab", "--resume", store.folder, "--fail-on", "slower", *tolerated, "--json")
    assert (json.loads(done.stdout)["verdict"], done.exit_code) == ("slower", code)


def test_a_threshold_is_a_share_of_what_fails(tmp_path: Path) -> None:
    for threshold, verdict, says in (
        ("2%", "inconclusive", "--threshold is of --fail-on slower"),
        ("200%", "slower", "--threshold"),
    ):
        with pytest.raises(UsageError, match=says):
            redline_raises("ab", "--resume", tmp_path, "--fail-on", verdict, "--threshold", threshold)
