"""Redline in a container: the image of the Containerfile, and what its guide says.

No registry is needed: the base is a stand-in, made of this machine's Python. The wheels' dependencies come from
where pip of this machine gets them.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from redline.launching.container_engine import ContainerEngine
from tests.e2e.test_containers import engine
from tests.e2e.test_installed import wheels
from tests.e2e.workshop import CHECKOUT
from tests.fakes import targets

__all__ = ["engine", "wheels"]
pytestmark = [pytest.mark.e2e, pytest.mark.long]

BASE, IMAGE = f"redline-test-base-{os.getpid()}", f"redline-test-{os.getpid()}"
PROGRAMS = ("sh", "env", "ls", "cat", "mkdir", "sleep", "true")
LIBRARIES = (
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "librt.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "libutil.so.1",
)
"""What packages with compiled parts need besides; a base image with Python has them too."""
SHORT_AB = ("--for", "4s", "--load", "closed:2")
SERVER = "redline-oracle null --port {port}"


def libraries_of(files: Iterable[Path]) -> set[Path]:
    """The shared libraries that programs and libraries need."""
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False)
    words = {word for line in done.stdout.splitlines() for word in line.split() if word.startswith("/")}
    return {Path(word) for word in words if not word.endswith(":")}


def without_packages(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """All of Python but its tests, and but packages that are not pip."""
    _, packages, name = entry.name.partition("/site-packages/")
    is_left_out = packages and not name.startswith("pip")
    return None if is_left_out or any(part in entry.name for part in ("__pycache__", "/test/")) else entry


def pack_base(file: Path) -> None:
    """A tar with Python, a shell, and the libraries of both, all at the paths that they have here."""
    prefix = Path(sys.base_prefix)
    python = Path(sys.executable).resolve()
    extensions = Path(sysconfig.get_path("platstdlib", vars={"platbase": str(prefix)})).glob("lib-dynload/*.so")
    programs = [Path(str(shutil.which(name))) for name in PROGRAMS]
    where = Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    known = {line.split()[0]: Path(line.split()[-1]) for line in found.splitlines() if "=>" in line}
    libraries = {known[name] for name in LIBRARIES} | libraries_of([python, *extensions, *programs])
    with tarfile.open(file, "w") as tar:
        for name in ("bin", "sbin", "lib", "lib64"):
            if (at := Path("/", name)).is_symlink():
                tar.add(at)
        for path in {*programs, *libraries, *where.glob("libpython3*.so*")}:
            real = path.parent.resolve() / path.name
            tar.add(path.resolve(), arcname=str(real))
        tar.add(prefix / "bin", filter=lambda entry: entry if "python" in entry.name or entry.isdir() else None)
        tar.add(prefix / "lib" / f"python3.{sys.version_info.minor}", filter=without_packages)
        for name in (
            "/etc/passwd",
            "/etc/group",
            "/etc/nsswitch.conf",
            "/etc/pip.conf",
            "/etc/ssl",
            "/usr/share/ca-certificates",
        ):
            if Path(name).exists():
                tar.add(name)
        link = tarfile.TarInfo("usr/local/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        tar.addfile(link)
        for name in ("tmp", "root"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755  # Python may be in /root
            tar.addfile(folder)


@pytest.fixture(scope="module")
def image(engine: ContainerEngine, wheels: list[Path]) -> Iterator[ContainerEngine]:
    """The engine, with the image built."""
    assert len(wheels) == 2
    with tempfile.TemporaryDirectory() as folder:
        pack_base(Path(folder, "base.tar"))
        engine.call(
            "import",
            "--change",
            "ENV PATH=/usr/local/bin:/usr/bin:/bin",
            str(Path(folder, "base.tar")),
            BASE,
            within_s=600,
        )
    try:
        arguments = (
            "--network",
            "host",
            "--build-arg",
            f"BASE={BASE}",
            "--tag",
            IMAGE,
            "--file",
            str(CHECKOUT / "Containerfile"),
        )
        engine.call("build", *arguments, *engine.ulimits, str(CHECKOUT), within_s=1200)
        yield engine
    finally:
        for name in (IMAGE, BASE):
            engine.call("rmi", "--force", name)


def in_container(engine: ContainerEngine, *words: str, options: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run `redline` in a container, as the guide says."""
    command = [*engine.command, "run", "--rm", "--init", *engine.ulimits, *options, IMAGE, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_it_says_its_version_and_looks_at_the_machine(image: ContainerEngine) -> None:
    done = in_container(image, "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("redline ")
    doctor = in_container(image, "doctor", "--json")
    assert json.loads(doctor.stdout), doctor.stderr


def test_it_compares_two_commands_and_leaves_the_results_outside(image: ContainerEngine, tmp_path: Path) -> None:
    options = ("--volume", f"{tmp_path}:/work")
    done = in_container(image, "ab", SERVER, SERVER, *SHORT_AB, "-o", "runs/AB", options=options)
    assert done.returncode == 0, done.stderr
    assert "A against itself" in " ".join(done.stdout.split())
    assert (tmp_path / "runs/AB/report.html").is_file()


def test_another_user_needs_no_home(image: ContainerEngine, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    options = ("--volume", f"{tmp_path}:/work", "--user", "12345:12345")
    done = in_container(image, "load", "http://127.0.0.1:9/", options=options)
    assert done.returncode != 0
    assert "hint:" in done.stderr
    done = in_container(image, "ab", SERVER, SERVER, *SHORT_AB, "-o", "runs/AB", options=options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/AB/run.json").stat().st_uid == 12345


def test_it_loads_a_server_of_the_host(image: ContainerEngine) -> None:
    with targets.target(targets.healthy) as url:
        done = in_container(image, "load", url, "-d", "500ms", "-c", "2", "--json", options=("--network", "host"))
        alone = in_container(image, "load", url, "-d", "500ms", "-c", "2")
    assert json.loads(done.stdout)["counts"]["outcomes"]["ok"] > 0, done.stderr
    assert alone.returncode != 0
    assert "hint:" in alone.stderr
