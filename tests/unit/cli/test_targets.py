"""Permitted targets of a load."""

import socket
from pathlib import Path

import psutil
import pytest

from redline.cli.targets import check_target, config_file
from redline.errors import StoreError, UsageError


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


OWN = [
    *("127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "LOCALHOST.", "a.localhost"),
    *("127.1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]", "0.0.0.0", "0", "::", "[::]"),
]


@pytest.mark.parametrize("host", OWN)
def test_this_machine_is_always_allowed(host: str) -> None:
    check_target(host, ())
    assert not config_file().exists()


def test_the_addresses_of_its_interfaces_are_this_machine() -> None:
    """As they are, and within IPv6."""
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family in (socket.AF_INET, socket.AF_INET6):
                check_target(each.address, ())
            if each.family == socket.AF_INET:
                check_target(f"::ffff:{each.address}", ())
    assert not config_file().exists()


OTHERS = ["10.7", "::ffff:10.0.0.7", "255.255.255.255", "224.0.0.1", "ff02::1", "fe80::dead:beef"]


@pytest.mark.parametrize(
    "host", ["10.0.0.7", "example.org", "2001:db8::1", "localhost.example.org", "128.0.0.1", *OTHERS]
)
def test_another_machine_has_to_be_named(host: str) -> None:
    with pytest.raises(UsageError, match="another machine") as caught:
        check_target(host, ("10.0.0.8",))
    assert f"--target-is-mine {host}" in caught.value.hint


def test_a_command_without_the_flag_names_the_file() -> None:
    with pytest.raises(UsageError, match="another machine") as caught:
        check_target("10.0.0.7", None)
    assert caught.value.hint == f"if it is yours, confirm that once: add a line `10.0.0.7` to {config_file()}"


def test_it_is_named_once() -> None:
    check_target("Example.org", ("example.org",))
    check_target("10.0.0.7", ("10.0.0.7", "10.0.0.8"))
    check_target("example.org.", ())
    check_target("10.0.0.7", ())
    with pytest.raises(UsageError):
        check_target("10.0.0.8", ())  # named, but never loaded
    assert config_file().read_text() == "10.0.0.7\nexample.org\n"


def test_a_zone_is_a_part_of_its_name_as_urls_write_it_too() -> None:
    check_target("fe80::1%eth0", ("[fe80::1%25eth0]",))
    check_target("fe80::1%eth0", ())
    with pytest.raises(UsageError):
        check_target("fe80::1%eth1", ())


def test_lines_of_the_users_own_hand_count() -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text("# the lab\n\n Lab-7.example.org \n")
    check_target("lab-7.example.org", ())


def test_what_cannot_be_remembered_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot be written"):
        check_target("10.0.0.7", ("10.0.0.7",))
