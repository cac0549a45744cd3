"""The preloaded process behaves as the script of `redline` does."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import REDLINE, Done, Redline

pytestmark = pytest.mark.e2e


def by_script(redline: Redline, *args: str) -> Done:
    done = subprocess.run(
        [REDLINE, *args],
        cwd=redline.folder,
        env=redline.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("args", "code"),
    [(("--version",), 0), (("check", "here.yaml"), 2), (("load", "http://127.0.0.1:1/", "-d", "1s"), 1)],
)
def test_a_call_is_what_the_script_is(redline: Redline, args: tuple[str, ...], code: int) -> None:
    (redline.folder / "here.yaml").write_text("servers: [\u2718]\n")
    done = redline(*args)
    assert done == by_script(redline, *args)
    assert done.code == code


def test_each_call_has_its_own_folder_and_environment(redline: Redline, tmp_path: Path) -> None:
    wide = redline("load", "--help")
    other = Redline(tmp_path / "other")
    other.folder.mkdir()
    other.environment["COLUMNS"] = "60"
    assert other("load", "--help") == by_script(other, "load", "--help") != wide
    assert redline("load", "--help") == wide
    (other.folder / "here.yaml").write_text("servers: nothing\n")
    assert "here.yaml:1" in other("check", "here.yaml").err
    assert "here.yaml:1" not in redline("check", "here.yaml").err
