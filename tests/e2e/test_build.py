"""`redline build`, with a catalogue whose build is a script."""

import json
import signal
from pathlib import Path

import jsonschema
import pytest

from redline.linux import procfs
from tests.e2e.conftest import CHECKOUT, Redline
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

SCRIPT = """\
#!/bin/sh
echo "$*" >> runs
[ -e wait ] && { sleep 600 & echo $! > pid; wait; }
for target in "$@"; do
  if [ "$target" = broken ]
  then echo "broken: could not be resolved: org.example:gone:1.0"
  else cp source $target.out
  fi
done
! [ "$target" = broken ]
"""

FAMILY = """\
runtime: native
build: {run: [./build], folder: ., inputs: [source]}
servers:
  first: {about: one, build: {target: first, outputs: [first.out]}, start: {command: [a, "{port}"]}}
  second: {about: two, build: {target: second, outputs: [second.out]}, start: {command: [a, "{port}"]}}
  broken: {about: never, build: {target: broken, outputs: [broken.out]}, start: {command: [a, "{port}"]}}
  lacking:
    about: needs what nobody has
    build: {target: lacking, outputs: [x], needs: [{command: no-such-tool-of-redline, hint: it is nowhere to be had}]}
    start: {command: [a, "{port}"]}
"""


@pytest.fixture
def family(redline: Redline) -> Path:
    folder = redline.folder / "catalogue/fake"
    folder.mkdir(parents=True)
    (folder / "server.yaml").write_text(FAMILY)
    (folder / "source").write_text("one")
    (folder / "build").write_text(SCRIPT)
    (folder / "build").chmod(0o755)
    (folder.parent / "scenarios.yaml").write_text("scenarios:\n  Get: {get: /}\n")
    return folder


def runs(family: Path) -> list[str]:
    file = family / "runs"
    return file.read_text().splitlines() if file.exists() else []


def test_servers_are_built_once_by_one_command(redline: Redline, family: Path) -> None:
    first = redline("build", "fake.first,fake.second")
    assert first.code == 0
    assert first.out.count("built now in") == 2
    assert "building fake.first, fake.second" in first.err
    again = redline("build", "fake.first", "fake.second")
    assert again.code == 0
    assert again.out.count("up to date") == 2
    assert again.err == ""
    assert runs(family) == ["first second"]


def test_what_fails_is_reported_with_its_reason_and_the_rest_is_built(redline: Redline, family: Path) -> None:
    done = redline("build", "--json")
    assert done.code == 1
    jsonschema.validate(done.json, json.loads((CHECKOUT / "docs/reference/cli.schema.json").read_text()))
    servers = {server["name"]: server for server in done.json["servers"]}
    states = {name: server["state"] for name, server in servers.items()}
    assert states == {"fake.first": "built", "fake.second": "built", "fake.broken": "failed", "fake.lacking": "failed"}
    assert servers["fake.broken"]["reason"].endswith("failed: could not be resolved: org.example:gone:1.0")
    assert servers["fake.lacking"]["hint"] == "it is nowhere to be had"
    again = redline("build")
    assert again.code == 1
    output = " ".join(again.out.split())
    assert "gone:1.0" in output
    assert "no-such-tool-of-redline is not" in output
    assert again.err == "building fake.broken\n"
    assert runs(family) == ["broken first second", "broken"]
    listed = redline("list", "--json").json["servers"]
    assert {server["name"]: server["state"] for server in listed if server["origin"] == "catalogue"} == {
        "fake.first": "built",
        "fake.second": "built",
        "fake.broken": "not built",
        "fake.lacking": "cannot be built",
    }
    some = redline("list", "fake.f*", "--json").json
    assert [server["name"] for server in some["servers"]] == ["fake.first"]
    assert (some["scenarios"], some["suites"]) == ({}, [])


def test_a_glob_that_matches_nothing(redline: Redline, family: Path) -> None:
    for command in ("build", "list"):
        redline(command, "fake.frist").refused(2, "no server of the catalogue matches `fake.frist`", "`fake.first`")
    assert runs(family) == []


def test_an_interrupt_ends_the_build_and_leaves_nothing_built(redline: Redline, family: Path) -> None:
    (family / "wait").write_text("")
    process = redline.start("build", "fake.first")
    try:
        assert eventually(lambda: (family / "pid").exists() and (family / "pid").read_text().strip() != "")
        pid = int((family / "pid").read_text())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err

    def ended() -> bool:
        stat = procfs.read_stat(pid)
        return stat is None or stat.state == "Z"

    assert eventually(ended)
    (family / "wait").unlink()
    assert "built now" in redline("build", "fake.first").out


def test_no_build_gets_the_repository_of_a_hook(redline: Redline, family: Path) -> None:
    """Nor does that of `redline run` in a hook, which uses the same code."""
    (family / "build").write_text("#!/bin/sh\nenv > environment\ncp source first.out\n")
    redline.environment |= {"GIT_DIR": "/repository/.git", "GIT_INDEX_FILE": "/repository/.git/index.lock"}
    redline.environment |= {"GIT_AUTHOR_NAME": "somebody"}
    assert redline("build", "fake.first").code == 0
    names = {line.partition("=")[0] for line in (family / "environment").read_text().splitlines()}
    assert names & {"GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_NAME"} == {"GIT_AUTHOR_NAME"}


WRITES = """\
#!/bin/sh
# All that it starts writes into one log until it ends, and the first build never does.
echo "begin $PPID" >> log
number=$(grep --count begin log)
setsid sh -c 'while :; do echo "$0" >> log; sleep 0.01; done' "$number" &
writer=$!
if [ "$number" = 1 ]; then wait; fi
sleep 0.3
kill -KILL $writer
cp source first.out
echo "end" >> log
"""


def test_the_build_of_a_killed_lab_ends_before_the_next_begins(redline: Redline, family: Path) -> None:
    log = family / "log"
    (family / "build").write_text(WRITES)
    killed = redline.start("build", "fake.first")
    assert eventually(lambda: log.exists() and log.read_text().count("1\n") > 10)
    killed.send_signal(signal.SIGKILL)
    again = redline("build", "fake.first")
    killed.communicate(timeout=60)
    assert "built now" in again.out, again.err
    first, second = log.read_text().split("begin ")[1:]
    assert set(first.splitlines()[1:]) == {"1"}
    assert set(second.splitlines()[1:]) == {"2", "end"}
    supervisor = int(first.splitlines()[0])
    assert procfs.read_bytes(f"/proc/{supervisor}/cmdline") == b""
