"""Users are limited to what the hosts can hold, and no report claims more."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.model import Closed, Environment, Suite
from redline.suite import Overrides, load_catalogue, read_suite
from redline.suite.fitting import SPARE_FILES, Hosts, fitted
from tests.fakes.recordings import simulated_environment

ROOT = Path(__file__).parents[3]
GIB = 1 << 30


@cache
def suite(name: str = "users-250k") -> Suite:
    file = ROOT / "suites" / f"{name}.yaml"
    return read_suite(file.read_text(), str(file), load_catalogue(ROOT / "catalogue"), Overrides())


def host(
    name: str = "a", files: int = 1 << 20, gib: float = 256, ports: tuple[int, int] | None = (1024, 65535)
) -> Environment:
    facts = {"hostname": name, "open_files_hard": files, "memory_bytes": int(gib * GIB), "port_range": ports}
    return simulated_environment().model_copy(update={**facts, "cgroup_memory_limit_bytes": None})


def of(server: str, loads: int) -> Hosts:
    return Hosts(host(server), tuple(host(f"load-{number}") for number in range(loads)))


def users(suite: Suite) -> int:
    (load,) = suite.loads
    assert isinstance(load.shape, Closed)
    return load.shape.most_users


def test_a_suite_for_a_quarter_of_a_million_users_has_them_on_hosts_that_hold_them() -> None:
    found, reasons = fitted(suite(), [of("server", 5)])
    assert (users(found), reasons) == (250_000, ())
    assert found.about == suite().about
    assert not found.fit


@pytest.mark.parametrize(
    ("server", "loads", "most", "why"),
    [
        (host("s", files=20_000), 5, 19_700, "a server on s may open 20,000 files"),
        (host("s"), 2, 116_120, "2 load hosts have 129,024 ports to connect from"),
        (host("s", gib=1), 5, 107_374, "connections may take 50% of the 1.0 GiB of s"),
        (host("s", gib=1), 0, 53_687, "connections may take 50% of the 1.0 GiB of s"),
    ],
)
def test_what_does_not_fit_is_left_out_with_the_reason(server: Environment, loads: int, most: int, why: str) -> None:
    found, (reason,) = fitted(suite(), [Hosts(server, of("s", loads).loads)])
    assert users(found) == most
    assert reason == f"ramp has {most:,} of 250,000 users: {why}"
    assert found.about.endswith(reason)
    again, nothing = fitted(found, [Hosts(host("t", files=1000))])
    assert (again, nothing) == (found, ())


def test_the_weakest_of_several_pairs_counts() -> None:
    found, (reason,) = fitted(suite(), [Hosts(host("strong")), Hosts(host("weak", files=5_000))])
    assert users(found) == 5_000 - SPARE_FILES
    assert "weak" in reason
    narrow = Hosts(host("s"), (host("load-0", ports=(32768, 60999)),))
    found, (reason,) = fitted(suite(), [of("t", 5), narrow])
    assert users(found) == 25_408
    assert "28,232 ports" in reason


@pytest.mark.parametrize(("cores", "most"), [(2, 2_000), (16, 16_000), (25, 25_000), (64, 25_000)])
def test_a_server_has_no_more_listeners_than_its_cores_push_messages_to(cores: int, most: int) -> None:
    strong = host("s").model_copy(update={"cores": cores})
    found, reasons = fitted(suite("websocket"), [Hosts(strong, of("s", 1).loads), Hosts(strong)])
    assert users(found) == most
    why = f"pushed has {most:,} of 25,000 users: a core may push 10,000 messages a second, and s has {cores}"
    assert reasons == ((why,) if most < 25_000 else ())


def test_a_quota_leaves_fewer_cores_and_a_user_at_least() -> None:
    half = host("s").model_copy(update={"cores": 16, "cgroup_cpu_limit": 0.5})
    found, (reason,) = fitted(suite("websocket"), [Hosts(half)])
    assert users(found) == 500
    assert reason.endswith("and s has 0.5")
    least = half.model_copy(update={"cgroup_cpu_limit": 0.0001})
    assert users(fitted(suite("websocket"), [Hosts(least)])[0]) == 1


def test_proxies_are_not_counted_so_they_are_refused() -> None:
    text = """\
servers: [{use: rust.hyper, route: [nginx]}]
routes: {nginx: [h1, proxy.nginx, h1]}
scenarios: [SimpleGet]
loads: {many: {closed: {users: 250000}, for: 1s}}
fit: true
"""
    asked = read_suite(text, "suite.yaml", load_catalogue(ROOT / "catalogue"), Overrides())
    with pytest.raises(UsageError, match="how many users a proxy can hold"):
        fitted(asked, [of("s", 1)])


def test_a_suite_that_does_not_ask_stays() -> None:
    plain = suite().model_copy(update={"fit": False})
    assert fitted(plain, [Hosts(host("s", files=1000))]) == (plain, ())


@given(files=st.integers(1_000, 400_000), hosts=st.integers(0, 6))
def test_no_more_users_than_files(files: int, hosts: int) -> None:
    found, reasons = fitted(suite(), [Hosts(host("s", files=files), of("s", hosts).loads)])
    assert 0 < users(found) <= min(250_000, files - SPARE_FILES)
    assert bool(reasons) == (users(found) < 250_000)
