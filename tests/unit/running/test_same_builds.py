"""Two revisions that are the same server: said only where every byte that a server can have used is the same."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.analysis import build_report
from redline.api.results import RunResult
from redline.cli.command_line import app
from redline.cli.experiment import exit_code, search_exit_code
from redline.errors import LaunchError, NotKnownError, UsageError
from redline.launching import checkouts
from redline.launching.checkouts import differences
from redline.limits.report import limit_report
from redline.linux.opened import OpenedFiles
from redline.model import Plan, Run, SameBuilds, Variant, Verdict
from redline.model.catalogue import Checkout, Revision
from redline.ports import BuildOutcome, Launch, Placement
from redline.render import RENDERERS
from redline.report.outcomes import outcomes
from redline.running.record import Tools
from redline.running.same_builds import same_builds
from tests.fakes.compared import compared_run
from tests.fakes.histories import comparison
from tests.fakes.plugins import FakeDriver, FakeLauncher, FakeServer
from tests.fakes.searched import CELL, plan_of
from tests.fakes.stored import kept

SAME = SameBuilds(servers=("main", "this pull request"), files=7, unopened=1, named=("README.md",))


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """Two equal checkouts with what a build left there."""
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        (root / "docs").mkdir(parents=True)
        (root / "target").mkdir()
        (root / ".git").write_text(f"gitdir: {root}\n")
        (root / "README.md").write_text("read me")
        (root / "docs" / "a.md").write_text("a")
        (root / "target" / "server").write_bytes(b"\x7fELF" + bytes(10_000))
        (root / "target" / "server").chmod(0o755)
        (root / "latest").symlink_to("target/server")
    return first, second


def link_elsewhere(root: Path) -> None:
    (root / "latest").unlink()
    (root / "latest").symlink_to("README.md")


def file_in_place_of_a_link(root: Path) -> None:
    (root / "latest").unlink()
    (root / "latest").write_text("target/server")


def test_equal_checkouts_have_no_difference(roots: tuple[Path, Path]) -> None:
    found = differences(*roots)
    assert found is not None
    assert (found.files, found.differing, found.listings) == (6, (), ())


CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...], tuple[str, ...]]] = {
    "content": (lambda root: (root / "README.md").write_text("read us"), ("README.md",), ()),
    "length": (lambda root: (root / "README.md").write_text("read"), ("README.md",), ()),
    "a late byte": (
        lambda root: (root / "target" / "server").write_bytes(b"\x7fELF" + bytes(9_999) + b"1"),
        ("target/server",),
        (),
    ),
    "mode": (lambda root: (root / "target" / "server").chmod(0o644), ("target/server",), ()),
    "a new file": (lambda root: (root / "docs" / "b.md").write_text("b"), ("docs/b.md",), ("docs",)),
    "a file that is gone": (lambda root: (root / "docs" / "a.md").unlink(), ("docs/a.md",), ("docs",)),
    "a new folder": (lambda root: (root / "new" / "in").mkdir(parents=True), ("new", "new/in"), ("",)),
    "a link": (link_elsewhere, ("latest",), ()),
    "a file in place of a link": (file_in_place_of_a_link, ("latest",), ()),
    "a FIFO": (lambda root: os.mkfifo(root / "pipe"), ("pipe",), ("",)),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("swapped", [False, True])
def test_every_difference_is_found(roots: tuple[Path, Path], name: str, *, swapped: bool) -> None:
    change, differing, listings = CHANGES[name]
    change(roots[1])
    found = differences(*(reversed(roots) if swapped else roots))
    assert found is not None
    assert (found.differing, found.listings) == (differing, listings)


def test_a_fifo_on_both_sides_is_never_read_and_never_equal(roots: tuple[Path, Path]) -> None:
    for root in roots:
        os.mkfifo(root / "pipe")
    found = differences(*roots)
    assert found is not None
    assert found.differing == ("pipe",)


def test_too_much_is_not_compared(roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkouts, "MOST_BYTES", 10_000)
    assert differences(*roots) is None
    assert differences(roots[0], roots[1] / "nothing") is None


def test_whoever_opens_a_file_is_seen(tmp_path: Path) -> None:
    for name in ("read", "run", "linked", "asked", "untouched"):
        shutil.copy(str(shutil.which("true")), tmp_path / name)
    (tmp_path / "link").symlink_to("linked")
    files = [tmp_path / name for name in ("read", "run", "linked", "asked", "untouched")]
    with OpenedFiles(files) as opened:
        assert opened.seen() == frozenset()
        subprocess.run(["cat", "read"], cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
        subprocess.run([tmp_path / "run"], check=True)
        (tmp_path / "link").read_bytes()
        os.stat(tmp_path / "asked")  # noqa: PTH116 - as a program does
        assert {Path(name).name for name in opened.seen()} == {"read", "run", "linked"}
        assert opened.seen() == frozenset()


def test_whoever_lists_a_folder_is_seen_where_it_matters(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    with OpenedFiles([tmp_path / "theirs" / "a"], [tmp_path / "ours"]) as opened:
        os.listdir(tmp_path / "theirs")  # noqa: PTH208 - as a program does
        assert opened.seen() == frozenset()
        os.listdir(tmp_path / "ours")  # noqa: PTH208
        assert len(opened.seen()) == 1


@dataclass
class Reading(FakeLauncher):
    """A launcher whose servers open files of their checkouts."""

    roots: dict[str, Path] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    at_the_end: bool = False

    @contextmanager
    def running(self, launch: Launch) -> Iterator[FakeServer]:
        with super().running(launch) as server:
            if not self.at_the_end:
                self._read(launch)
            yield server
            self._read(launch)

    def _read(self, launch: Launch) -> None:
        for name in self.reads:
            file = self.roots[launch.variant.slug] / name
            if file.exists():
                file.read_bytes()


def of_revisions(run: Run, start: tuple[str, ...] = ("target/server", "{port}")) -> Plan:
    """The plan of a comparison of two revisions."""
    plan = run.manifest.plan
    changed: dict[str, Variant] = {}
    for number, variant in enumerate(plan.suite.variants):
        revision = Revision(name=variant.slug, commit=f"{number}" * 40)
        checkout = Checkout(repository="/shop", revision=revision, build=None, below="")
        command = variant.catalogued.start.model_copy(update={"command": start})
        entry = variant.catalogued.model_copy(update={"checkout": checkout, "start": command})
        changed[variant.slug] = variant.model_copy(update={"entry": entry})
    suite = plan.suite.model_copy(update={"variants": tuple(changed.values())})
    cells = {
        cell_id: cell.model_copy(update={"variant": changed[cell.variant.slug]}) for cell_id, cell in plan.cells.items()
    }
    return plan.model_copy(update={"suite": suite, "cells": cells})


def judged(
    roots: tuple[Path, Path],
    reads: tuple[str, ...] = (),
    *,
    plan: Plan | None = None,
    wrong: str | None = None,
    error: LaunchError | None = None,
    at_the_end: bool = False,
) -> tuple[SameBuilds | None, int]:
    """What is said of two builds whose servers open these files, and how often a server was started."""
    plan = plan or of_revisions(compared_run(starts=1))
    names = [variant.slug for variant in plan.suite.variants]
    by_name = dict(zip(names, roots, strict=True))
    launcher = Reading([], error=error, roots=by_name, reads=reads, at_the_end=at_the_end)
    tools = Tools(launcher, FakeDriver([], wrong=wrong), lambda _server: (), Placement())
    return same_builds(plan, BuildOutcome(checkouts=by_name), tools), len(launcher.launches)


def test_equal_bytes_are_the_same_server_without_a_start(roots: tuple[Path, Path]) -> None:
    same, starts = judged(roots)
    assert same == SameBuilds(servers=("A", "B"), files=6)
    assert starts == 0
    assert same.evidence == "all 6 files of both checkouts are equal, with what the builds left there"


@pytest.mark.parametrize("reads", [(), ("target/server",), ("target/server", "docs/a.md")])
def test_documents_that_no_server_opens_make_no_difference(roots: tuple[Path, Path], reads: tuple[str, ...]) -> None:
    (roots[1] / "README.md").write_text("read us")
    same, starts = judged(roots, reads)
    assert same == SameBuilds(servers=("A", "B"), files=6, unopened=1, named=("README.md",))
    assert starts == 2
    assert "5 of 6 files of the checkouts are equal" in same.evidence
    assert "neither server opened the others, README.md" in same.evidence


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_document_that_a_server_opens_is_measured(roots: tuple[Path, Path], *, at_the_end: bool) -> None:
    (roots[1] / "README.md").write_text("read us")
    assert judged(roots, ("README.md",), at_the_end=at_the_end) == (None, 1)


def committed(root: Path) -> None:
    """Make a repository of what a checkout has, but for its builds."""
    (root / ".git").unlink()
    (root / ".gitignore").write_text("target\n")
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *words], cwd=root, check=True)


def stamped(root: Path, commit: str, rest: bytes = b"") -> None:
    """Have the build leave its folder, its commit and its time."""
    text = f"of {root}, {commit}, 2026-11-30T05:1{commit[0]}:00Z"
    (root / "target" / "server").write_bytes(text.encode() + rest)


@pytest.fixture
def alike(tmp_path: Path) -> tuple[Path, Path]:
    """Two checkouts whose paths have the same length."""
    for name in ("one", "two"):
        (tmp_path / name / "target").mkdir(parents=True)
        (tmp_path / name / ".git").touch()
        committed(tmp_path / name)
    return tmp_path / "one", tmp_path / "two"


def test_builds_that_differ_by_stamps_alone_are_the_same_program(alike: tuple[Path, Path]) -> None:
    for number, root in enumerate(alike):
        stamped(root, f"{number}" * 40)
    same, starts = judged(alike)
    assert same is not None
    assert starts == 0
    assert same.text == "A and B build the same program, but for its stamps: nothing to compare"
    stamps = "target/server (the folder of the build, the commit, a time)"
    assert f"only by their stamps differ {stamps}" in same.evidence
    assert same.evidence.startswith("2 of 3 files")


def test_a_stamp_and_one_more_byte_are_measured(alike: tuple[Path, Path]) -> None:
    for number, root in enumerate(alike):
        stamped(root, f"{number}" * 40, rest=bytes([number]))
    assert judged(alike) == (None, 0)


def test_the_commit_of_another_build_is_no_stamp(alike: tuple[Path, Path]) -> None:
    for number, root in enumerate(alike):
        stamped(root, f"{number + 2}" * 40)
    assert judged(alike) == (None, 0)


def test_a_time_that_a_commit_changes_is_measured(alike: tuple[Path, Path]) -> None:
    for number, root in enumerate(alike):
        stamped(root, f"{number}" * 40)
        subprocess.run(["git", "add", "-Af", "target"], cwd=root, check=True)
    assert judged(alike) == (None, 0)


@pytest.mark.parametrize(("name", "starts"), [("NEWS.md", 2), ("feature", 1)])
def test_a_folder_that_is_listed_at_the_start_matters_where_code_is_new(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, name: str, starts: int
) -> None:
    """As Python lists the folders of its modules; a server that lists a folder for its answers is measured."""
    (roots[1] / name).touch()
    listed, only_once = list[Path](), False

    def listing(self: Reading, launch: Launch) -> None:
        root = self.roots[launch.variant.slug]
        if root not in listed or not only_once:
            listed.append(root)
            os.listdir(root)  # noqa: PTH208 - as a program does

    monkeypatch.setattr(Reading, "_read", listing)
    assert judged(roots)[0] is None, "it lists the folder after its answers, too"
    listed.clear()
    only_once = True
    same, started = judged(roots)
    assert (same is not None, started) == (starts == 2, starts)


def test_a_file_that_only_the_baseline_has_and_opens_is_measured(roots: tuple[Path, Path]) -> None:
    (roots[0] / "local.json").write_text("{}")
    assert judged(roots, ("local.json",)) == (None, 2)


def test_what_the_command_names_needs_no_start_to_differ(roots: tuple[Path, Path]) -> None:
    (roots[1] / "target" / "server").write_bytes(b"another")
    assert judged(roots) == (None, 0)


def test_a_file_with_two_names_may_be_opened_by_the_other(roots: tuple[Path, Path]) -> None:
    (roots[1] / "README.md").write_text("read us")
    (roots[1].parent / "other").hardlink_to(roots[1] / "README.md")
    assert judged(roots) == (None, 0)


def test_servers_that_do_not_start_or_answer_wrongly_are_measured(roots: tuple[Path, Path]) -> None:
    """So that the reason is said as it is of every comparison."""
    (roots[1] / "README.md").write_text("read us")
    assert judged(roots, wrong="status 500")[0] is None
    assert judged(roots, error=LaunchError("no", hint="none"))[0] is None


def test_other_commands_or_several_builds_are_measured(roots: tuple[Path, Path]) -> None:
    plan = of_revisions(compared_run(starts=1))
    suite = plan.suite
    first, second = suite.variants
    start = second.catalogued.start.model_copy(update={"env": {"A": "1"}})
    other = second.model_copy(update={"entry": second.catalogued.model_copy(update={"start": start})})
    for update in ({"variants": (first, other)}, {"builds": 2}):
        changed = plan.model_copy(update={"suite": suite.model_copy(update=update)})
        assert judged(roots, plan=changed) == (None, 0)
    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement())
    assert same_builds(plan, BuildOutcome(), tools) is None, "commands and URLs have no checkouts"


def reported(same: SameBuilds = SAME) -> Run:
    run = compared_run(names=("main", "this pull request"), starts=1)
    return run.model_copy(update={"manifest": run.manifest.of_same_builds(same), "duets": ()})


def test_every_format_says_that_there_is_nothing_to_compare() -> None:
    report = build_report(reported())
    text = "main and this pull request build the same bytes: nothing to compare"
    for name in ("md", "html", "json", "junit", "annotations"):
        assert (text in RENDERERS[name](report).decode()) == (name != "json"), name
    for name in ("csv", "bmf", "benchmark"):
        assert RENDERERS[name](report) is not None
    assert RENDERERS["md"](report).decode().startswith(f"**{text}**\n")
    assert SAME.model_dump(mode="json") == report.model_dump(mode="json")["run"]["same"]
    assert "not complete" not in RENDERERS["md"](report).decode()


def test_it_passes_whatever_may_fail() -> None:
    report = build_report(reported())
    for fail_on in ((), (Verdict.SLOWER,), (Verdict.SLOWER, Verdict.INCONCLUSIVE)):
        assert exit_code([report], fail_on) == 0
    assert [outcome.state for outcome in outcomes(report)] == ["passed"]


def test_python_says_the_same() -> None:
    result = RunResult(build_report(reported()), None)
    assert (result.verdict, result.slower, result.valid) == (Verdict.EQUIVALENT, False, True)
    with pytest.raises(NotKnownError):
        _ = result.change.p99


def test_a_history_goes_on_over_such_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in range(3):
        kept(tmp_path / str(place), comparison(place))
    same = comparison(3)
    kept(tmp_path / "3", same.model_copy(update={"manifest": same.manifest.of_same_builds(SAME), "duets": ()}))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["history", ".", "--format", "md"])
    assert done.exit_code == 0, done.output
    gated = CliRunner().invoke(app, ["history", ".", "--fail-on", "regression"])
    assert gated.exit_code == 0, (gated.output, gated.exception)


def test_a_comparison_of_such_a_run_says_that_nothing_was_measured(tmp_path: Path) -> None:
    store = kept(tmp_path / "run", reported())
    done = CliRunner().invoke(app, ["compare", str(store.folder), "--fail-on", "slower"])
    assert done.exit_code == 0, done.exception
    assert "note: main and this pull request build the same bytes: nothing to compare" in done.stderr


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    store = kept(tmp_path / "run", compared_run(starts=1))
    done = CliRunner().invoke(app, ["compare", str(store.folder), f"{store.folder}/"])
    assert isinstance(done.exception, UsageError)
    assert "is there twice" in str(done.exception)


def test_what_a_run_lacks_is_said_beside_a_comparison(tmp_path: Path) -> None:
    run = compared_run(starts=4)
    store = kept(tmp_path / "run", run.model_copy(update={"duets": run.duets[:3]}))
    done = CliRunner().invoke(app, ["compare", str(store.folder)])
    assert "warn: " in done.stderr
    assert "it is not complete" in done.stderr


def test_a_search_of_two_revisions_with_the_same_bytes_says_so_and_searches_nothing() -> None:
    manifest = plan_of(CELL).model_copy(update={"same": SAME, "suite_file": ""})
    report = limit_report(manifest, {})
    text = "main and this pull request build the same bytes: nothing to compare"
    assert report.same == SAME
    assert report.cells == ()
    assert text in RENDERERS["md"](report).decode()
    assert text in RENDERERS["html"](report).decode()
    assert json.loads(RENDERERS["json"](report))["same"]["files"] == SAME.files
    assert [outcome.text for outcome in outcomes(report)] == [f"{text}: {SAME.evidence}"]
    assert search_exit_code(report) == 0
