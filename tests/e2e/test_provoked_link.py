"""A full link, provoked for real: a network with another in it, and between them a link that carries 20 Mbit/s.

Only the kernel's report of the link is faked: its two devices are software, which have no speed to report, so
one of them is presented as hardware. The traffic, the capacity and the counters are the kernel's.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from redline.model import FindingKind
from redline.model.load_result import LoadResult
from tests.e2e.conftest import REDLINE, Redline

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

NEEDED = ("unshare", "nsenter", "ip", "tc", "mount")
REFUSALS = ("unshare:", "nsenter:", "RTNETLINK", "mount:", "Error:", "Cannot", "mkdir:")

BEHIND = """\
set -e
ip link set lo up
ip link set behind up
ip address add 10.77.0.2/24 dev behind
tc qdisc add dev behind root tbf rate 20mbit burst 20kb latency 20ms
exec "$ORACLE" fixed --delay 1ms --host 10.77.0.2 --port 8080 --body-bytes 20000
"""
BEFORE = """\
set -e
ip link set lo up
ip link add before type veth peer name behind
ip link set before up
ip address add 10.77.0.1/24 dev before

mkdir "$FOLDER/sys"
mount -t sysfs none "$FOLDER/sys"
mount -t tmpfs none /sys/class/net
mkdir -p /sys/class/net/before/device
echo 20 > /sys/class/net/before/speed
ln -s "$FOLDER/sys/class/net/before/statistics" /sys/class/net/before/statistics

unshare --net sh -c 'until ip link show behind >/dev/null 2>&1; do sleep 0.02; done; . "$FOLDER/behind"' >&2 &
server=$!
trap 'kill $server; wait $server || true' EXIT
until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
  kill -0 $server
  sleep 0.02
done
ip link set behind netns $server
tries=0
until nsenter --net=/proc/$server/ns/net ss -Hltn 2>/dev/null | grep -q :8080; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || exit 9
  sleep 0.05
done
"$@"
"""


def over_a_link(redline: Redline, oracle: Path, *flags: str) -> set[FindingKind]:
    """The kinds of findings of a load on a server behind the link."""
    for command in NEEDED:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    (redline.folder / "behind").write_text(BEHIND)
    (redline.folder / "before").write_text(BEFORE)
    load = [str(REDLINE), "load", "http://10.77.0.2:8080/", "--json", "-d", "1s", "--warmup", "300ms", *flags]
    load += ["--target-is-mine", "10.77.0.2"]
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", str(redline.folder / "before"), *load],
        cwd=redline.folder,
        env={
            **redline.environment,
            "XDG_CONFIG_HOME": str(redline.folder),
            "FOLDER": str(redline.folder),
            "ORACLE": str(oracle),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if not done.stdout and any(word in done.stderr for word in REFUSALS):
        pytest.skip(f"no network and mounts of one's own here: {done.stderr.strip()}")
    assert done.stdout, (done.returncode, done.stderr)
    return {finding.kind for finding in LoadResult.model_validate_json(done.stdout).findings}


def test_a_full_link_is_reported(redline: Redline, oracle: Path) -> None:
    assert "network-limited" in over_a_link(redline, oracle, "-c", "8")


def test_a_link_with_room_is_left_alone(redline: Redline, oracle: Path) -> None:
    assert "network-limited" not in over_a_link(redline, oracle, "-R", "30", "-c", "8")
