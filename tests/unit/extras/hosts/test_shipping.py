"""Builds that are copied to hosts: whole, once, and under their content hash."""

import itertools
from pathlib import Path

import pytest

from redline.errors import BuildError, LaunchError
from redline.extras.hosts.shipping import Received, packed, parcel_of
from redline.launching.builds import Builds, StandingBuild
from redline.model import Tool
from tests.fakes.servers.entries import make_catalogue, server

VARIANT = server()
ENTRY = VARIANT.catalogued


@pytest.fixture
def build(tmp_path: Path) -> StandingBuild:
    builds = Builds(make_catalogue(tmp_path / "project/catalogue"), tmp_path / "cache")
    builds.build([ENTRY], lambda _building: None)
    return builds.find(ENTRY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def send(build: StandingBuild, project: Path, received: Received) -> str:
    parcel = parcel_of(build, project)
    for chunk, following in itertools.pairwise([*packed(build, project), None]):
        assert chunk is not None
        received.take(parcel.key, chunk, last=following is None)
    received.know((parcel,))
    return parcel.key


def test_a_build_arrives_whole(build: StandingBuild, project: Path, tmp_path: Path) -> None:
    received = Received(tmp_path / "there")
    key = send(build, project, received)
    assert received.has(key)
    found = received.find(ENTRY)
    assert found.folder.is_relative_to(tmp_path / "there/received" / key)
    assert {file.name for file in found.folder.iterdir()} == {"input.txt", "out"}
    assert (found.hash, found.entry) == (build.hash, ENTRY)
    assert received.build([ENTRY], lambda _building: None).hashes == {ENTRY.name: build.hash}
    assert not list((tmp_path / "there/received").glob("*.tar"))


def test_a_large_build_comes_in_chunks(
    build: StandingBuild, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.extras.hosts.shipping.CHUNK_BYTES", 512)
    (build.folder / "input.txt").write_bytes(bytes(range(256)) * 40)
    assert len(list(packed(build, project))) > 2
    received = Received(tmp_path / "there")
    send(build, project, received)
    assert (received.find(ENTRY).folder / "input.txt").read_bytes() == bytes(range(256)) * 40


def test_what_was_built_otherwise_is_another_parcel(build: StandingBuild, project: Path) -> None:
    before = parcel_of(build, project).key
    (build.folder / "out").write_text("other")
    assert parcel_of(build, project).key != before


def test_an_agent_that_was_slower_finds_it_there(build: StandingBuild, project: Path, tmp_path: Path) -> None:
    first, second = Received(tmp_path / "there"), Received(tmp_path / "there")
    assert send(build, project, first) == send(build, project, second)
    assert second.find(ENTRY).folder == first.find(ENTRY).folder


def test_what_is_not_there_cannot_be_started(build: StandingBuild, project: Path, tmp_path: Path) -> None:
    received = Received(tmp_path / "there")
    with pytest.raises(LaunchError, match="has not been sent"):
        received.find(ENTRY)
    received.know((parcel_of(build, project),))
    assert ENTRY.name in received.build([ENTRY], lambda _building: None).failures


def test_a_host_without_what_starts_it_says_so(build: StandingBuild, project: Path, tmp_path: Path) -> None:
    received = Received(tmp_path / "there")
    send(build, project, received)
    lacking = server(needs=(Tool(command="no-such-tool", hint="install it"),)).catalogued
    with pytest.raises(LaunchError, match="no-such-tool is not installed"):
        received.find(lacking)


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    received = Received(tmp_path / "there")
    with pytest.raises(LaunchError, match="could not be kept"):
        received.take("key", b"no archive", last=True)
    assert not received.has("key")
    assert not list((tmp_path / "there/received").glob("*.tar"))


def test_a_build_outside_of_the_project_cannot_travel(build: StandingBuild, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="outside of"):
        parcel_of(build, tmp_path / "elsewhere")
