"""Servers of every kind behind the same launcher: the catalogue's, commands, revisions, and running servers."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from redline.errors import LaunchError, RedlineError
from redline.launching.container_engine import CHOICE
from redline.launching.ownership import AttachedWatch, KnownProcesses, watch
from redline.launching.revision import RevisionLauncher
from redline.launching.revisions import Repository
from redline.launching.servers import ServersLauncher
from redline.model import AttachedServer, Container, ServerEntry, Start, Variant
from redline.model.catalogue import Checkout, ComposeService, OwnImage
from redline.ports import Building, Launch, Placement
from tests.fakes.servers.entries import SCRIPT, alive, make_catalogue, server

FREE = Placement()
COMMAND = (sys.executable, "-I", "-S", str(SCRIPT), "{port}", "healthy")


def contained(name: str, **how: object) -> Variant:
    """A server of the user's that is started in containers."""
    entry = ServerEntry(name=name, about="mine", runtime="", family_folder=".", start=Start(command=()))
    return Variant(entry=entry.model_copy(update=how))


def git(folder: Path, *args: str) -> None:
    names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *args], cwd=folder, env={**os.environ, **names}, check=True, capture_output=True)


def own(name: str, folder: Path, *, checkout: Checkout | None = None, command: tuple[str, ...] = COMMAND) -> Variant:
    """A server of the user's."""
    healthy = server(command=command).catalogued
    return Variant(
        entry=ServerEntry(
            name=name,
            about="mine",
            runtime="",
            family_folder=str(folder),
            checkout=checkout,
            start=Start(command=command, env=healthy.start.env),
        )
    )


def silent(_building: Building) -> None:
    """No watching."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for text in ("one", "two"):
        (folder / "text").write_text(text)
        git(folder, "add", "text")
        git(folder, "commit", "--quiet", "--message", text)
    return Repository.around(folder)


def checkouts(repository: Repository, build: str | None) -> tuple[Checkout, ...]:
    folder = str(repository.folder)
    return tuple(
        Checkout(repository=folder, revision=each, build=build, below=".") for each in repository.range("HEAD~1..HEAD")
    )


def launcher_in(folder: Path, stack: ExitStack) -> ServersLauncher:
    return ServersLauncher(make_catalogue(folder / "catalogue"), folder / "cache", stack)


def test_containers_of_every_kind_share_an_engine_that_is_tried_once_and_a_janitor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, calls = tmp_path / "podman", tmp_path / "calls"
    client.write_text(f"""#!/bin/sh
case "$*" in
  *version*) echo podman 4.3.1 ;;
  *"image inspect"*) echo '[{{"Id": "sha256:1"}}]' ;;
  *" run "* | "run "*) echo run >>{calls} ;;
esac
""")
    client.chmod(0o755)
    monkeypatch.setenv(CHOICE, str(client))
    (tmp_path / "compose.yaml").write_text("services: {web: {image: shop}}\n")
    service = ComposeService(file=str(tmp_path / "compose.yaml"), service="web", port=1)
    variants = (
        contained("image", image=OwnImage(name="shop", port=1)),
        contained("composed", compose=service),
        server().model_copy(update={"container": Container(image="shop")}),
    )
    with ExitStack() as stack:
        launcher = launcher_in(tmp_path, stack)
        outcome = launcher.build(variants, silent)
        launcher._catalogue.containers.close()
    assert outcome.hashes["image"] == "sha256:1"
    assert calls.read_text().splitlines() == ["run"]


def test_servers_of_every_kind_run_at_the_same_time(tmp_path: Path, repository: Repository) -> None:
    with ExitStack() as stack:
        launcher = launcher_in(tmp_path, stack)
        old, _ = checkouts(repository, "cp text built")
        variants = (server(), own("mine", tmp_path), own("old", tmp_path, checkout=old))
        outcome = launcher.build(variants, silent)
        assert outcome.failures == {}
        assert outcome.hashes["old"] == old.revision.commit
        with ExitStack() as running:
            started = [
                running.enter_context(launcher.running(Launch(variant, FREE, tmp_path / f"{number}.log")))
                for number, variant in enumerate(variants)
            ]
            attached = Variant(entry=AttachedServer(host="127.0.0.1", port=started[0].endpoint.port, label="there"))
            assert launcher.build((attached,), silent).hashes == {"there": ""}
            there = running.enter_context(launcher.running(Launch(attached, FREE, tmp_path / "none")))
            hashes = [outcome.hash_of(variant.slug) for variant in variants]
            assert [each.facts.build for each in started if each.facts] == hashes
            assert all(isinstance(watch(each), KnownProcesses) for each in started)
            assert isinstance(watch(there), AttachedWatch)
            assert {*watch(there).pids} <= {*watch(started[0]).pids}
        assert [alive(variant) for variant in variants] == [[], [], []]


def test_a_command_has_the_content_of_the_files_that_it_names(tmp_path: Path) -> None:
    program = tmp_path / "program"
    variant = own("mine", tmp_path, command=("./program", "{port}"))

    def content() -> str:
        with ExitStack() as stack:
            return launcher_in(tmp_path, stack).build((variant,), silent).hashes["mine"]

    assert content() == ""
    program.write_text("one")
    (tmp_path / "catalogue").rename(tmp_path / "catalogue-1")
    before = content()
    program.write_text("two")
    (tmp_path / "catalogue").rename(tmp_path / "catalogue-2")
    assert len({before, content(), ""}) == 3


def test_revisions_are_built_once_and_leave_nothing(tmp_path: Path, repository: Repository) -> None:
    command = ("sh", "-c", f"cat built; exec {' '.join(COMMAND)}".replace("{port}", '"$0"'), "{port}")
    both = [
        own(each.revision.name, tmp_path, checkout=each, command=command)
        for each in checkouts(repository, "echo x >> count; cp text built")
    ]
    with ExitStack() as stack:
        launcher = launcher_in(tmp_path, stack)
        for _ in range(2):
            launcher.build((*both, *both), silent, builds=2)
        for variant, said in zip(both, ("one", "two"), strict=True):
            for number in range(2):
                log = tmp_path / "log"
                with launcher.running(Launch(variant, FREE, log, build_number=number)) as running:
                    assert running.facts is not None
                    folder = Path(f"/proc/{running.facts.pid}/cwd").resolve()
                    assert log.read_text().startswith(said)
                    assert (folder / "count").read_text() == "x\n"
        worktrees = subprocess.run(["git", "worktree", "list"], cwd=repository.folder, capture_output=True, check=True)
        assert len(worktrees.stdout.splitlines()) == 5
    assert not folder.exists()
    worktrees = subprocess.run(["git", "worktree", "list"], cwd=repository.folder, capture_output=True, check=True)
    assert len(worktrees.stdout.splitlines()) == 1


def test_a_revision_that_does_not_build_keeps_no_other_from_it(tmp_path: Path, repository: Repository) -> None:
    old, new = checkouts(repository, "grep two text")
    with ExitStack() as stack:
        launcher = launcher_in(tmp_path, stack)
        outcome = launcher.build((own("old", tmp_path, checkout=old), own("new", tmp_path, checkout=new)), silent)
    assert list(outcome.hashes) == ["new"]
    assert outcome.failures["old"].message.startswith(f"{old.revision} does not build: `build` ended with code 1")


@pytest.mark.parametrize(
    ("build", "hint"),
    [(None, "say in `build` of redline.yaml what builds it, or fix the command"), ("true", "build it first, or fix")],
)
def test_what_a_checkout_lacks_is_for_build_to_make(
    build: str | None, hint: str, tmp_path: Path, repository: Repository
) -> None:
    old, _ = checkouts(repository, build)
    variant = own("old", tmp_path, checkout=old, command=("./shop", "{port}"))
    with ExitStack() as stack:
        launcher = launcher_in(tmp_path, stack)
        assert launcher.build((variant,), silent).failures == {}
        with pytest.raises(LaunchError, match=r"there is no .*/shop") as refused:
            stack.enter_context(launcher.running(Launch(variant, FREE, tmp_path / "old.log")))
    assert hint in refused.value.hint


def test_a_revision_without_the_folder_of_the_project_is_named(tmp_path: Path, repository: Repository) -> None:
    lacking = checkouts(repository, None)[0].model_copy(update={"below": "server"})
    with ExitStack() as stack:
        outcome = launcher_in(tmp_path, stack).build((own("old", tmp_path, checkout=lacking),), silent)
    assert "has no folder server" in outcome.unavailable["old"]


@pytest.mark.parametrize("build", ["exit 3", None])
def test_a_checkout_without_its_submodule_says_how_to_fetch_it(
    repository: Repository, tmp_path: Path, build: str | None
) -> None:
    folder = repository.folder
    (folder / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n')
    commit = repository.revision("HEAD").commit
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "--quiet", "--message", "submodule")
    checkout = Checkout(repository=str(folder), revision=repository.revision("HEAD"), build=build, below=".")
    variant = own("old", folder, checkout=checkout, command=(sys.executable, "lib/server.py", "{port}"))
    with ExitStack() as stack:
        launcher = RevisionLauncher(stack)
        failed: RedlineError | None = launcher.build([variant], silent).failures.get("old")
        if build is None:
            with pytest.raises(LaunchError) as refused, launcher.running(Launch(variant, FREE, tmp_path / "log")):
                pass
            failed = refused.value
        assert failed is not None
        assert failed.hint.startswith("the submodule lib is empty: begin `build` with `git submodule update --init`; ")
