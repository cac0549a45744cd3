"""A host's report of its clock while chronyd runs there: one namespace follows the chronyd of another."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.model import ClockReading
from tests.e2e.namespaces import NetHost, hosts, skip_without_namespaces

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

READ = """\
from redline.linux.host import read_clock
found = read_clock()
print(found.model_dump_json() if found else "null")
"""
FOLLOWS_WITHIN_S = 30.0
BOUND_NS = 50_000_000
"""Both read the same clock of the kernel, but a busy machine answers late."""
NAMES = {"head": "0", "server-0": "0", "load-0": "1"}


@pytest.fixture
def net(tmp_path: Path) -> Iterator[dict[str, NetHost]]:
    if shutil.which("chronyd") is None:
        pytest.skip("chronyd is not installed")
    skip_without_namespaces()
    with hosts(tmp_path / "net", NAMES) as found:
        for name, host in found.items():
            if name != "load-0":
                host.run_chrony(found["head"])
            host.start("sleep", "infinity")
        yield found


def read(host: NetHost) -> ClockReading | None:
    command = host.command(sys.executable, "-c", READ)
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return ClockReading.model_validate(found) if found else None


def test_a_clock_that_follows_one_in_its_network_is_known_to_a_millisecond(net: dict[str, NetHost]) -> None:
    deadline = time.monotonic() + FOLLOWS_WITHIN_S
    # chronyd allows for a whole second after its first answer, and for less after every further answer.
    while (found := read(net["server-0"])) is None or found.stratum < 9 or found.bound_ns >= BOUND_NS:
        assert time.monotonic() < deadline, (found, net["server-0"].said())
        time.sleep(0.5)
    assert (found.reference, found.stratum) == (net["head"].address, 9)
    assert found.bound_ns > 0
    own = read(net["head"])
    assert own is not None
    assert (own.stratum, own.bound_ns) == (8, 0)


def test_a_clock_that_follows_none_is_not_known(net: dict[str, NetHost]) -> None:
    assert read(net["load-0"]) is None
