"""`scripts/check-tools` on machines that lack something, with a PATH of small fakes."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "check-tools"
RUSTUP_LINE = "https://sh.rustup.rs | sh"


class Machine:
    """A folder that is the whole PATH."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.path.mkdir()

    def has(self, name: str, script: str = "") -> None:
        tool = self.path / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)

    def has_python(self, name: str, version: str, *, venv: bool = True) -> None:
        fits = int(version.split(".")[1]) >= 11
        self.has(
            name,
            f'case "$*" in\n*version_info*) exit {int(not fits)};;\n*ensurepip*) exit {int(not venv)};;\n'
            f"--version) echo Python {version};;\nesac",
        )

    def has_rust(self, version: str) -> None:
        self.has("cargo", f"echo 'cargo {version} (abc 2026-01-01)'")

    def check(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/bash", SCRIPT, *args],
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A PATH with all tools."""
    made = Machine(tmp_path)
    made.has_python("python3", "3.12.1")
    made.has_rust("1.88.0")
    made.has("cc")
    return made


def test_a_machine_that_has_all_gets_no_message(machine: Machine) -> None:
    done = machine.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.check("--python").stdout == "python3\n"


def test_an_old_python_is_passed_over_for_a_newer_one_beside_it(machine: Machine) -> None:
    machine.has_python("python3", "3.10.12")
    machine.has_python("python3.11", "3.11.4")
    machine.has_python("python3.13", "3.13.0", venv=False)
    done = machine.check("--python")
    assert (done.returncode, done.stdout, done.stderr) == (0, "python3.11\n", "")


def test_an_old_python_alone_is_reported_with_its_version(machine: Machine) -> None:
    machine.has_python("python3", "3.10.12")
    done = machine.check("--python")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "found Python 3.10.12" in done.stderr
    assert "python3.11-venv" in done.stderr


def test_a_python_without_venv_is_reported_by_its_name(machine: Machine) -> None:
    machine.has_python("python3", "3.10.12")
    machine.has_python("python3.12", "3.12.0", venv=False)
    done = machine.check()
    assert done.returncode == 1
    assert "python3.12-venv" in done.stderr


def test_no_python_at_all(machine: Machine) -> None:
    (machine.path / "python3").unlink()
    done = machine.check()
    assert done.returncode == 1
    assert "missing: Python 3.11 or later\n" in done.stderr


@pytest.mark.parametrize("version", ["1.87.1", "1.9.0", "0.99.0"])
def test_an_old_rust_is_updated_by_what_brought_it(machine: Machine, version: str) -> None:
    machine.has_rust(version)
    done = machine.check()
    assert done.returncode == 1
    assert f"Rust 1.88 or later (found {version})" in done.stderr
    assert RUSTUP_LINE in done.stderr
    machine.has("rustup")
    assert "rustup update" in machine.check().stderr


@pytest.mark.parametrize("version", ["1.88.0", "1.100.0-nightly", "2.0.0"])
def test_a_later_rust_will_do(machine: Machine, version: str) -> None:
    machine.has_rust(version)
    assert machine.check().returncode == 0


def test_a_rustup_without_a_toolchain(machine: Machine) -> None:
    machine.has("cargo", "echo 'error: no default toolchain' >&2; exit 1")
    machine.has("rustup")
    done = machine.check()
    assert done.returncode == 1
    assert "rustup default stable" in done.stderr


def test_everything_that_is_missing_is_reported_at_once(tmp_path: Path) -> None:
    done = Machine(tmp_path).check()
    assert done.returncode == 1
    assert done.stderr.count("missing:") == 3
    assert RUSTUP_LINE in done.stderr
    assert "gcc" in done.stderr
