"""JDKs are recognized by the files in their homes, and the best of a release is taken."""

from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching.jdks import Jdk, Jdks, Progress, best, installed, on_path, read_home, runtime_version
from tests.fakes.jdks import BARE, asking, make_home
from tests.fakes.servers.entries import server

TEMURIN = 'IMPLEMENTOR="Eclipse Adoptium"\nJAVA_RUNTIME_VERSION="25.0.3+9-LTS"\nJAVA_VERSION="25.0.3"\n'
DEBIAN = 'IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="17.0.15+6-Debian-1deb12u1"\nJAVA_VERSION="17.0.15"\n'
EARLY = 'IMPLEMENTOR="Oracle Corporation"\nJAVA_RUNTIME_VERSION="27-ea+10-900"\nJAVA_VERSION="27-ea"\n'
EIGHT = 'IMPLEMENTOR="Temurin"\nJAVA_RUNTIME_VERSION="1.8.0_452-b09"\nJAVA_VERSION="1.8.0_452"\n'
GRAAL = 'IMPLEMENTOR="Oracle Corporation"\nGRAALVM_VERSION="25"\nJAVA_RUNTIME_VERSION="25+37-LTS"\nJAVA_VERSION="25"\n'


def of_version(folder: Path, version: str) -> Jdk:
    home = make_home(
        folder / version, f'JAVA_RUNTIME_VERSION="{version}"\nJAVA_VERSION="{version.partition("+")[0]}"\n'
    )
    found = read_home(home)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("release", "feature", "ga", "name"),
    [
        (TEMURIN, 25, True, "Temurin 25.0.3+9"),
        (DEBIAN, 17, True, "Debian 17.0.15+6-Debian-1deb12u1"),
        (EARLY, 27, False, "Oracle 27-ea+10-900"),
        (EIGHT, 8, True, "Temurin 1.8.0_452-b09"),
        (GRAAL, 25, True, "Oracle GraalVM 25+37"),
        (BARE, 21, True, "JDK 21.0.8"),
    ],
)
def test_a_home_names_release_vendor_and_version(
    tmp_path: Path, release: str, feature: int, ga: bool, name: str
) -> None:
    found = read_home(make_home(tmp_path / "home", release))
    assert found is not None
    assert (found.feature, found.ga, found.name) == (feature, ga, name)
    assert found.java == tmp_path / "home/bin/java"


def test_what_is_no_home_is_passed_over(tmp_path: Path) -> None:
    without_java = make_home(tmp_path / "a", TEMURIN)
    (without_java / "bin/java").unlink()
    without_release = make_home(tmp_path / "b", TEMURIN)
    (without_release / "release").unlink()
    for home in (without_java, without_release, make_home(tmp_path / "c", "VERSION=nothing"), tmp_path / "missing"):
        assert read_home(home) is None


def test_the_best_is_a_released_build_then_the_newest_update(tmp_path: Path) -> None:
    versions = ["21.0.9+10", "21.0.10+1", "21.0.10+7", "21.0.11-ea+3", "25.0.1+8", "21+35"]
    jdks = [of_version(tmp_path, version) for version in versions]
    assert best(jdks, 21) is jdks[2]
    assert best(jdks, 25) is jdks[4]
    assert best([jdks[3]], 21) is jdks[3]
    assert best(jdks, 17) is None


def test_of_equal_ones_the_first_is_taken(tmp_path: Path) -> None:
    one, other = of_version(tmp_path / "a", "21.0.9+10"), of_version(tmp_path / "b", "21.0.9+10")
    assert best([one, other], 21) is one
    assert best([other, one], 21) is other


def test_homes_are_looked_for_in_java_home_the_roots_and_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_home = make_home(tmp_path / "java_home", TEMURIN)
    rooted = make_home(tmp_path / "jvm/java-17", DEBIAN)
    (tmp_path / "jvm/link").symlink_to(rooted)
    (tmp_path / "jvm/file").write_text("")
    pathed = make_home(tmp_path / "pathed", EARLY)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").symlink_to(pathed / "bin/java")
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = installed((f"{tmp_path}/jvm/*", f"{tmp_path}/none/*/*"))
    assert [jdk.home for jdk in found] == [java_home, rooted, pathed]
    home = on_path()
    assert home is not None
    assert home.home == pathed


def test_a_machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed((f"{tmp_path}/*",)) == ()
    with pytest.raises(BuildError, match="the `java` on the PATH") as caught:
        Jdks(tmp_path).find(asking("path"))
    assert "put a JDK's `bin` on the PATH" in caught.value.hint


def test_a_user_without_a_home_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a number without an entry in passwd."""

    def nobody(_uid: int) -> None:
        raise KeyError("no such user")

    rooted = make_home(tmp_path / "jvm/java-17", DEBIAN)
    for name in ("HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    make_home(tmp_path / "~/.jdks/not-a-home", TEMURIN)
    assert [jdk.home for jdk in installed(("~/.jdks/*", f"{tmp_path}/jvm/*"))] == [rooted]


def test_a_variant_gets_the_jdk_that_it_asks_for(tmp_path: Path) -> None:
    here = of_version(tmp_path, "21.0.9+10")
    named = make_home(tmp_path / "graal", GRAAL)
    jdks = Jdks(tmp_path / "cache", machine=lambda: (here,))
    assert jdks.find(server()) is None
    assert jdks.find(asking(21)) is here
    assert runtime_version(asking(21), here) == "JDK 21.0.9+10 (jdk 21)"
    found = jdks.find(asking(str(named)))
    assert found is not None
    assert runtime_version(asking(str(named)), found) == f"Oracle GraalVM 25+37 (jdk {named})"
    with pytest.raises(BuildError, match="/nowhere is not of a JDK") as caught:
        jdks.provide(asking("/nowhere"), print)
    assert "the folder with `bin/java` and `release`" in caught.value.hint


def test_what_was_found_is_kept_for_the_run(tmp_path: Path) -> None:
    machine = [of_version(tmp_path, "21.0.9+10")]
    jdks = Jdks(tmp_path / "cache", machine=lambda: tuple(machine))
    first = jdks.provide(asking(21), print)
    machine.append(of_version(tmp_path, "21.0.10+1"))
    assert jdks.find(asking(21)) is first


def test_what_failed_once_is_not_tried_again_for_each_variant(tmp_path: Path) -> None:
    tried: list[int] = []

    def fetch(feature: int, folder: Path, progress: Progress) -> Jdk:
        tried.append(feature)
        raise BuildError("no network", hint="plug it in")

    jdks = Jdks(tmp_path, machine=lambda: (), fetch=fetch)
    for _ in range(3):
        with pytest.raises(BuildError, match="no network"):
            jdks.provide(asking(17), print)
    assert tried == [17]
