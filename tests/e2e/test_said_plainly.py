"""Messages about commands, addresses and repositories that cannot be used: they state the problem, without guesses."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.launching.process import free_port
from redline.linux.sockets import listening_for
from tests.e2e.conftest import Done, Redline
from tests.e2e.lab import Lab
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

ODD = Path(__file__).parents[1] / "fakes" / "servers" / "odd.py"
OBJECTIVE = ("--objective", "p99 < 100ms")
CATALOGUE = """\
about: what is no server
runtime: python
build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}
ready: {path: /, within: 5s}
servers:
"""


def odd(habit: str, more: str = "") -> tuple[str, ...]:
    return (sys.executable, "-S", str(ODD), "{port}", habit, more)


def in_all(redline: Redline, lab: Lab, command: tuple[str, ...]) -> Iterator[tuple[str, Done]]:
    """The messages of the commands that start a server."""
    folder = lab.folder / "catalogue" / "odd"
    folder.mkdir(exist_ok=True)
    (folder / "server.yaml").write_text(f"{CATALOGUE}  one: {{about: one, start: {{command: {list(command)!r}}}}}\n")
    suite = lab.suite("odd.one", scenario="Ok", trials=1)
    yield "run", redline("run", suite, "-o", redline.folder / "run")
    load = "{closed: {users: 4}, for: 300ms}"
    assert load in suite.read_text()
    rate = "{open: {rate: 100, connections: 4}, for: 1s}"
    suite.write_text(suite.read_text().replace(load, rate) + "objective: p99 < 100ms\n")
    yield "limit", redline("limit", suite, "-o", redline.folder / "limit")
    text = shlex.join(command)
    yield "ab", redline("ab", text, text, "--for", "3s")
    yield "limit A B", redline("limit", text, text, *OBJECTIVE)


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    return Lab(tmp_path, oracle)


def plain(done: Done, code: int, *words: str) -> None:
    said = " ".join((done.err + done.out).split())
    assert done.code == code, said
    assert "Traceback" not in said
    for word in words:
        assert word in said, (word, said)


def test_a_command_that_goes_into_the_background(redline: Redline, lab: Lab) -> None:
    for command, done in in_all(redline, lab, odd("daemon")):
        plain(done, 1, "exited with code 0", "running in the background", "listens at 127.0.0.1:")
        assert "stay in the foreground" in done.err or command == "run"  # which has hints on its page


def test_a_program_that_is_not_there(redline: Redline, lab: Lab) -> None:
    for _command, done in in_all(redline, lab, ("/no/such/server", "{port}")):
        plain(done, 1, "could not be started: there is no /no/such/server")


def test_a_second_port_that_is_fixed(redline: Redline) -> None:
    command = shlex.join(odd("second_said", str(free_port())))
    done = redline("ab", command, command, "--for", "3s")
    done.refused(1, "B found port", "in use, which it wants besides", "listens at 127.0.0.1:", "at the same time")


def test_a_port_that_a_strange_process_has(redline: Redline, lab: Lab) -> None:
    with listening("127.0.0.1") as port:
        for _command, done in in_all(redline, lab, odd("second_said", str(port))):
            plain(done, 1, f"found port {port} in use", f"listens at 127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("command", "word", "advice"),
    [
        ("PORT={port} ./server", "PORT={port}", "env PORT={port} ./server"),
        ("cd app && ./server {port}", "cd", "sh -c 'cd app && ./server {port}'"),
        ("./server {port} > log", ">", "leave it out"),
        ("~/server {port}", "~/server", "write the whole path"),
        ("./server $PORT", "$PORT", "write `{port}`: Redline chooses the port"),
    ],
)
def test_a_command_that_is_for_a_shell(redline: Redline, lab: Lab, command: str, word: str, advice: str) -> None:
    says = f"`{word}` is for a shell, and commands start without one"
    redline("ab", command, command).refused(2, says, advice)
    redline("limit", command, command, *OBJECTIVE).refused(2, says, advice)
    commit = "-c user.name=a -c user.email=a@b commit --quiet --allow-empty --message one"
    for args in ("init --quiet", commit, f"{commit} --message two"):
        subprocess.run(["git", *args.split()], cwd=redline.folder, check=True)
    (redline.folder / "redline.yaml").write_text(f'start: "{command}"\n')
    redline("ab", "--git", "HEAD~1..HEAD").refused(2, "redline.yaml:1:8: start: ", says, advice)
    entry = f"{CATALOGUE}  one: {{about: one, start: {{command: {command.split()!r}}}}}\n"
    (lab.folder / "catalogue" / "bad" / "server.yaml").write_text(entry)
    redline("run", lab.suite("bad.one")).refused(2, "servers.one.start.command: ", says)


@contextmanager
def listening(host: str) -> Iterator[int]:
    """A server at this address."""
    habit, port = ("sixth" if host == "::1" else "healthy"), free_port()
    script = ODD if habit == "sixth" else ODD.with_name("server.py")
    with subprocess.Popen([sys.executable, "-S", str(script), str(port), habit]) as server:
        try:
            assert eventually(lambda: bool(listening_for(host, port)))
            yield port
        finally:
            server.kill()


def test_a_server_that_listens_at_another_address(redline: Redline) -> None:
    with listening("::1") as port:
        url = f"http://127.0.0.1:{port}/"
        says = (f"nothing listens at 127.0.0.1:{port}", f"listens at [::1]:{port}")
        redline("load", url, "-d", "1s").refused(1, *says)
        redline("limit", url, *OBJECTIVE).refused(1, *says)
        redline("ab", url, url, "--for", "3s").refused(1, *says)


@pytest.mark.parametrize(
    "host",
    ["127.1", "localhost", *(pytest.param(name, marks=pytest.mark.long) for name in ("0.0.0.0", "[::ffff:127.0.0.1]"))],
)
def test_an_address_of_this_machine_needs_no_permission(redline: Redline, host: str) -> None:
    with listening("127.0.0.1") as port:
        done = redline("load", f"http://{host}:{port}/", "-c", "1", "-d", "300ms", "--warmup", "100ms")
    assert "is another machine" not in done.measured().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_folder_from_which_nothing_may_be_executed(redline: Redline) -> None:
    (redline.folder / "quiet").mkdir()
    script = (
        "mount -t tmpfs -o noexec none quiet && printf '#!/bin/sh\\nexit 0\\n' > quiet/server && chmod +x quiet/server"
        " && redline ab './quiet/server {port}' './quiet/server {port}'"
    )
    done = redline.in_own_mounts(script)
    done.refused(1, "quiet/server may not be executed: ", "quiet is mounted noexec")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_temporary_files_where_nothing_may_be_executed(redline: Redline) -> None:
    work = redline.folder / "work"
    work.mkdir()
    (redline.folder / "quiet").mkdir(mode=0o700)
    (work / "build.sh").write_text("#!/bin/sh\n")
    (work / "build.sh").chmod(0o755)
    (work / "redline.yaml").write_text("build: ./build.sh\nstart: ./server {port}\n")
    commit = "git -c user.name=a -c user.email=a@b commit --quiet --message one"
    script = (
        f"mount -t tmpfs -o noexec,mode=0700 none quiet && cd work && git init --quiet && git add . && {commit}"
        " && echo >> redline.yaml && TMPDIR=$PWD/../quiet redline ab --git HEAD"
    )
    done = redline.in_own_mounts(script)
    done.refused(1, "does not build: `build` ended with code 126, and ", "quiet is mounted noexec", "TMPDIR names ")
