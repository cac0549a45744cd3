"""The two wheels of `make dist`, installed by themselves: no checkout, compiler, git or rights, in an empty folder."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.workshop import CHECKOUT

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SERVER = '''\
"""Answers `ok` to each GET."""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''
SUITE = """\
servers:
  - {{name: own, command: '{command}'}}
scenarios:
  - {{name: Ok, get: /, expect: {{status: 200, body: ok}}}}
loads:
  few: {{closed: {{users: 2}}, for: 300ms}}
warmup: 100ms
trials: 2
"""
_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--")
_PROGRAMS = ("true", "sh")
"""All that is on the PATH."""


@dataclass(frozen=True)
class Installed:
    """An environment with the two wheels, a user's folders, and how that user is become."""

    folder: Path
    become: tuple[str, ...]

    @property
    def python(self) -> Path:
        return self.folder / "env/bin/python"

    @property
    def server(self) -> str:
        return f"{self.python} {self.folder}/server.py {{port}}"

    def __call__(self, *args: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `redline` in the empty folder."""
        environment = {
            "HOME": str(self.folder / "home"),
            "PATH": str(self.folder / "path"),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "120",
        }
        words = [shutil.which(word) or word for word in self.become[:1]] + list(self.become[1:])
        done = subprocess.run(
            [*words, self.folder / "env/bin/redline", *args],
            cwd=self.folder / "empty",
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done


def run(*command: str | Path, **more: str) -> str:
    done = subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, **more}, capture_output=True, text=True, timeout=2400, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels, in a folder of their own: another worker of pytest may build them again, one at a time."""
    folder = tmp_path_factory.mktemp("dist")
    lock = CHECKOUT / ".cache" / "dist.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run("make", "dist")
        return [Path(shutil.copy(wheel, folder)) for wheel in sorted((CHECKOUT / "dist").glob("*.whl"))]


@pytest.fixture(scope="module")
def installed(wheels: list[Path]) -> Iterator[Installed]:
    uv = CHECKOUT / ".tools/bin/uv"
    folder = Path(tempfile.mkdtemp(prefix="redline-installed-"))
    try:
        folder.chmod(0o755)
        for name in ("home", "empty", "path"):
            (folder / name).mkdir()
        (folder / "server.py").write_text(SERVER)
        for program in _PROGRAMS:
            (folder / "path" / program).symlink_to(str(shutil.which(program, path="/usr/bin:/bin")))
        become, python = who_and_python()
        run(uv, "venv", "--quiet", "--python", python, folder / "env")
        pinned = folder / "requirements.txt"
        run(uv, "export", "--quiet", "--frozen", "--no-dev", "--no-emit-workspace", "--no-hashes", "-o", pinned)
        run(uv, "pip", "install", "--quiet", "--python", folder / "env/bin/python", "--requirements", pinned, *wheels)
        if become:
            for name in ("home", "empty"):
                shutil.chown(folder / name, "nobody")
        yield Installed(folder, become)
    finally:
        shutil.rmtree(folder)


def who_and_python() -> tuple[tuple[str, ...], str]:
    """How to become a user without rights, and a Python for that user; nothing to become where that cannot be."""
    if os.geteuid() == 0 and shutil.which("setpriv"):
        fits = "import sys; sys.exit(sys.version_info < (3, 11))"
        for python in (sys.executable, "/usr/bin/python3"):
            real = str(Path(python).resolve())
            # By a shell: what setpriv itself starts may still be allowed more.
            command = [*_NOBODY, "/bin/sh", "-c", 'exec "$0" -c "$1"', real, fits]
            done = subprocess.run(command, cwd="/", capture_output=True, check=False)
            if done.returncode == 0:
                return _NOBODY, real
    return (), str(Path(sys.executable).resolve())


def test_the_wheels_are_small_and_for_any_linux(wheels: list[Path]) -> None:
    lab, engine = wheels
    assert lab.name.endswith("-py3-none-any.whl")
    assert "manylinux_2_17" in engine.name
    assert sum(wheel.stat().st_size for wheel in wheels) < 12_000_000


def test_the_static_engine_loads_a_server_without_a_library(wheels: list[Path], oracle: Path) -> None:
    del wheels  # it is built beside them
    built = [*(CHECKOUT / "dist").glob("redline-engine-*-linux-musl")]
    if not built:
        pytest.skip("Rust has no standard library for musl here")
    linked = subprocess.run(["ldd", built[0]], capture_output=True, text=True, check=False)
    assert re.search("not a dynamic executable|statically linked", linked.stdout + linked.stderr)
    with subprocess.Popen([oracle, "null"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://{server.stdout.readline().split()[-1]}/"
        command = [str(built[0]), "load", url, "-d", "300ms"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        server.terminate()
    assert "throughput" in done.stdout, done.stderr


def test_the_wheel_brings_the_plugin_of_pytest(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        (points,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert "[pytest11]\nredline = redline.pytest_plugin\n" in wheel.read(points).decode()
        assert "redline/pytest_plugin.py" in wheel.namelist()


def test_a_wheel_from_a_source_archive_is_the_same(wheels: list[Path], tmp_path: Path) -> None:
    hatchling, epoch = CHECKOUT / ".tools/dist/bin/hatchling", run("git", "log", "-1", "--format=%ct").strip()
    run(hatchling, "build", "--target", "sdist", "--directory", tmp_path, SOURCE_DATE_EPOCH=epoch)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    subprocess.run(
        [hatchling, "build", "--target", "wheel", "--directory", tmp_path],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        check=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == wheels[0].read_bytes()


def test_what_is_installed_beside_the_programs(installed: Installed) -> None:
    share = installed.folder / "env/share"
    for name in ("man/man1/redline.1", "bash-completion/completions/redline", "doc/redline/llms.txt"):
        assert (share / name).stat().st_size > 200, name
    listed = (share / "doc/redline/llms.txt").read_text()
    assert "docs/guide/install.md" in listed
    assert (share / "doc/redline/docs/guide/install.md").is_file()


def test_it_lists_its_catalogue_and_checks_a_suite_by_its_name(installed: Installed) -> None:
    listed = json.loads(installed("list", "--json").stdout)
    states = {server["name"]: server["state"] for server in listed["servers"]}
    assert states["rust.hyper"] == "cannot be built"
    assert states["oracle.null"] in {"built", "not built"}
    assert "quickstart" in installed("list").stdout
    for name in ("quickstart", "suites/quickstart.yaml"):
        done = installed("check", name)
        assert done.returncode == 0, done.stderr


def test_the_selftest_names_its_extra_and_builds_nothing(installed: Installed) -> None:
    selftest = ("selftest", "--case", "fixed", "--seconds", "0.5", "--json")
    refused = installed(*selftest)
    assert refused.returncode == 2
    assert "needs the package scipy" in refused.stderr
    assert "pip install 'redline[selftest]'" in refused.stderr
    uv, pinned = CHECKOUT / ".tools/bin/uv", installed.folder / "selftest.txt"
    wanted = ("--frozen", "--no-dev", "--no-emit-workspace", "--no-hashes", "--extra", "selftest")
    run(uv, "export", "--quiet", *wanted, "-o", pinned)
    run(uv, "pip", "install", "--quiet", "--python", installed.folder / "env/bin/python", "--requirements", pinned)
    done = installed(*selftest)
    assert done.stdout, done.stderr
    assert [case["name"] for case in json.loads(done.stdout)["cases"]] == ["fixed"], done.stderr


def test_it_compares_loads_and_searches_own_servers(installed: Installed, tmp_path: Path) -> None:
    done = installed("ab", installed.server, installed.server, "--for", "4s", "--load", "closed:2", "--json")
    assert done.returncode == 0, done.stderr
    short = ("-d", "1s", "--warmup", "50ms", "--probes", "2", "--start", "100", "--trials", "2", "--no-beyond")
    done = installed("limit", installed.server, "--objective", "p99 < 1s", *short, "--json")
    assert done.returncode in {0, 1}, done.stderr
    assert json.loads(done.stdout)
    oracle = subprocess.Popen(
        [installed.folder / "env/bin/redline-oracle", "null", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    with oracle:
        assert oracle.stdout is not None
        address = oracle.stdout.readline().split()[-1]
        done = installed("load", f"http://{address}/", "-d", "300ms", "--warmup", "50ms", "--json")
        oracle.terminate()
    assert json.loads(done.stdout), done.stderr


def test_it_runs_a_suite_of_own_servers(installed: Installed) -> None:
    suite = installed.folder / "own.yaml"
    suite.write_text(SUITE.format(command=installed.server))
    done = installed("run", suite, "-o", "kept")
    assert done.returncode in {0, 1}, done.stderr
    assert "report:" in done.stderr
    assert (installed.folder / "empty/kept/report.html").is_file()


def test_the_doctor_and_the_cache_say_where_things_are(installed: Installed) -> None:
    cache = f"{installed.folder}/home/.cache/redline"
    installed("list")
    advice = json.loads(installed("doctor", "--json").stdout)["advice"]
    assert any(item["topic"] == "cache" and cache in item["says"] for item in advice)
    assert "the installed catalogue" in installed("cache").stdout
    assert installed("cache", "--clean").returncode == 0
    assert not list((installed.folder / "home/.cache/redline/catalogues").iterdir())


def test_an_engine_of_another_version_is_refused(installed: Installed) -> None:
    engine = installed.folder / "env/bin/redline-engine"
    kept = engine.with_name("kept")
    engine.rename(kept)
    try:
        engine.write_text("#!/bin/sh\necho redline-engine 0.0.9\n")
        engine.chmod(0o755)
        done = installed("load", "http://127.0.0.1:1/", "-d", "300ms")
    finally:
        kept.replace(engine)
    assert done.returncode == 2
    assert "is of version 0.0.9: they have to be of the same version\n  hint: " in done.stderr
