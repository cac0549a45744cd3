"""The lab on a Ray cluster of hosts made from namespaces."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.storage.runs import RunStore
from tests.e2e.conftest import REDLINE, Done
from tests.e2e.lab import ON_HOSTS, Lab
from tests.e2e.namespaces import NetHost, cluster, skip_unless_possible

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

LIMIT_S = 300


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, NetHost]]:
    skip_unless_possible()
    with cluster(tmp_path_factory.mktemp("net"), {"head": "1", "server-0": "0", "load-0": "1", "load-1": "1"}) as found:
        yield found


def redline(net: dict[str, NetHost], folder: Path, *words: str) -> Done:
    """Run the command on the head."""
    head = net["head"]
    done = subprocess.run(
        head.command(str(REDLINE), *words),
        cwd=folder,
        env=head.environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    made = Lab(tmp_path / "lab", oracle)
    (made.folder / "hosts.yaml").write_text(ON_HOSTS)
    return made


def test_a_suite_runs_on_the_hosts_of_a_cluster(net: dict[str, NetHost], lab: Lab) -> None:
    done = redline(net, lab.folder, "run", "hosts.yaml", "--on", "auto", "-o", "run")
    assert done.code == 0, (done.err, {name: host.said() for name, host in net.items()})
    recordings = RunStore(lab.folder / "run").recordings()
    assert len(recordings) == 4
    for recording in recordings:
        assert recording.failure is None
        assert recording.traffic is not None
        assert recording.traffic.counts.outcomes.ok == recording.traffic.counts.due > 0
        assert [host.role for host in recording.hosts] == ["server", "load", "load"]
        assert {host.address for host in recording.hosts} == {
            net[name].address for name in ("server-0", "load-0", "load-1")
        }
        assert all(host.cluster_rss_bytes for host in recording.hosts)


def test_a_cluster_that_is_not_there_is_named(net: dict[str, NetHost], lab: Lab) -> None:
    done = redline(net, lab.folder, "run", "hosts.yaml", "--on", "127.0.0.1:1", "-o", "run")
    done.refused(2, "no Ray cluster", "127.0.0.1:1")


def test_too_few_hosts_are_counted(net: dict[str, NetHost], lab: Lab) -> None:
    (lab.folder / "hosts.yaml").write_text(ON_HOSTS.replace("load: 2", "load: 3"))
    done = redline(net, lab.folder, "run", "hosts.yaml", "--on", "auto", "-o", "run")
    done.refused(2, "2 with `load`", "3 are needed")


def test_a_suite_for_hosts_needs_a_cluster(net: dict[str, NetHost], lab: Lab) -> None:
    done = redline(net, lab.folder, "run", "hosts.yaml", "-o", "run")
    done.refused(2, "2 load hosts", "--on")


def test_the_doctor_examines_each_host(net: dict[str, NetHost], lab: Lab) -> None:
    done = redline(net, lab.folder, "doctor", "--hosts", "auto", "--json")
    assert done.code == 0, done.err
    hosts = done.json["hosts"]
    assert sorted((host["role"], host["address"]) for host in hosts) == sorted(
        (name.partition("-")[0], host.address) for name, host in net.items() if name != "head"
    )
    assert all("clock" in {advice["topic"] for advice in host["advice"]} for host in hosts)
    printed = redline(net, lab.folder, "doctor", "--hosts", "auto").out
    assert all(host["name"] in printed for host in hosts)


def test_a_duet_on_hosts_reads_the_clock_of_each_server(net: dict[str, NetHost], lab: Lab) -> None:
    suite = ON_HOSTS.replace("[good.one]", "[good.one, good.two]").replace("hosts: {load: 2}", "baseline: good.one")
    (lab.folder / "hosts.yaml").write_text(f"{suite}design: duet\n".replace("trials: 2", "trials: 3"))
    done = redline(net, lab.folder, "run", "hosts.yaml", "-l", "saturate", "--on", "auto", "-o", "run")
    assert done.code == 0, done.err
    duets = RunStore(lab.folder / "run").duets()
    assert len(duets) == 3
    for duet in duets:
        assert duet.failure is None
        assert duet.traffic is not None
        slices = [each for block in duet.traffic.blocks for each in block.slices]
        assert all(each.cpu_ns[each.target] for each in slices), slices[:3]
