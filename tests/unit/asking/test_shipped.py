"""The installed catalogue: its copy in the cache, and where suites are found by name."""

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from redline.asking import places, shipped
from redline.cli.cached import kept
from redline.driving.engine_process import check_version
from redline.errors import UsageError

SUITE = "servers: [rust.axum]\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a catalogue, a cache, and an empty current folder."""
    package = tmp_path / "package"
    (package / "catalogue/rust").mkdir(parents=True)
    (package / "suites").mkdir()
    (package / "suites/quickstart.yaml").write_text(SUITE)
    build = package / "catalogue/rust/build"
    build.write_text("#!/bin/sh\n")
    build.chmod(0o555)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(shipped, "_INSTALLED", package)
    shipped.shipped_project.cache_clear()
    yield package
    shipped.shipped_project.cache_clear()


def again() -> Path:
    """The copy, as another process finds it."""
    shipped.shipped_project.cache_clear()
    return shipped.shipped_project()


def test_the_copy_can_be_written_and_what_is_executed_stays_so(installed: Path) -> None:
    copy = places.project()
    assert copy.is_relative_to(installed.parent / "cache/redline")
    assert (copy / "catalogue/rust/build").stat().st_mode & 0o777 == 0o755
    assert (copy / "suites/quickstart.yaml").stat().st_mode & 0o777 == 0o644
    assert [item.path for item in kept(installed.parent / "cache/redline")] == [copy]


def test_what_is_built_in_it_stays_until_the_content_is_another(installed: Path) -> None:
    copy = places.project()
    (copy / "catalogue/rust/out").touch()
    assert again() == copy
    assert (copy / "catalogue/rust/out").exists()
    (installed / "suites/quickstart.yaml").write_text("servers: [rust.hyper]\n")
    assert again() != copy


def test_a_catalogue_of_the_users_own_comes_first(installed: Path) -> None:
    Path("catalogue").mkdir()
    assert places.project() == Path.cwd()
    assert places.own()[0].is_relative_to(installed.parent / "cache")


def test_the_suites_of_this_folder_come_before_those_of_the_catalogues(installed: Path) -> None:
    (installed / "suites/other.yaml").write_text(SUITE)
    Path("suites").mkdir()
    for name in ("mine", "quickstart"):
        Path(f"suites/{name}.yaml").write_text(SUITE)
    own = Path.cwd() / "suites"
    copy = shipped.shipped_project() / "suites"
    assert places.suites() == (own / "mine.yaml", own / "quickstart.yaml", copy / "other.yaml")
    assert places.ready_suite(Path("quickstart")) == own / "quickstart.yaml"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["catalogue", "suites"])
def test_that_of_another_user_counts_in_the_current_folder_alone(
    installed: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Path.cwd()
    for folder in ("catalogue", "suites", "mine"):
        Path(folder).mkdir()
    os.chown(name, 65534, 65534)
    assert places.project() == trap
    monkeypatch.chdir("mine")
    assert places.project().is_relative_to(installed.parent / "cache")
    os.chown(trap / name, 0, 0)
    assert places.project() == trap


def test_the_copy_of_a_read_only_package_can_be_written(installed: Path) -> None:
    for folder in (installed / "catalogue/rust", installed / "catalogue", installed):
        folder.chmod(0o555)
    copy = places.project()
    assert {path.stat().st_mode & 0o777 for path in (copy, *copy.rglob("*")) if path.is_dir()} == {0o755}


def test_a_ready_suite_is_found_by_its_name_and_by_its_path_in_a_checkout(installed: Path) -> None:
    suite = places.project() / "suites/quickstart.yaml"
    assert places.ready_suite(Path("quickstart")) == suite
    assert places.ready_suite(Path("suites/quickstart.yaml")) == suite
    assert places.of_suite(suite)[0] == suite.parents[1] / "catalogue"
    for other in ("quickstart.yaml", "other", "suites/other.yaml", "some/quickstart"):
        assert places.ready_suite(Path(other)) == Path(other)


def test_a_file_of_the_users_comes_before_a_ready_suite(installed: Path) -> None:
    Path("quickstart").write_text(SUITE)
    assert places.ready_suite(Path("quickstart")) == Path("quickstart")


def test_a_cache_that_cannot_be_made_is_one_message(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("file").absolute()))
    with pytest.raises(UsageError, match="cannot be copied to") as raised:
        places.project()
    assert "XDG_CACHE_HOME" in raised.value.hint


def test_an_engine_of_another_version_is_refused() -> None:
    own = version("redline")
    check_version(Path("redline-engine"), own)
    with pytest.raises(UsageError, match=f"this is redline {own}, and redline-engine is of version 9.9.9: they have"):
        check_version(Path("redline-engine"), "9.9.9")
