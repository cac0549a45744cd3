"""What becomes of connections to listeners, by what the kernel says of sockets."""

from collections.abc import Sequence
from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pytest

from redline.linux import procfs, sockets
from redline.linux.sockets import At
from redline.watching.listening import Listening

HERE, OTHER = At(IPv4Address("127.0.0.1"), 80), At(IPv4Address("127.0.0.1"), 81)
EVERYWHERE = At(sockets.ANY[0], 80)


def listener(at: At, inode: int, drops: int = 0, waiting: int = 0) -> Any:
    return SimpleNamespace(local=at, inode=inode, drops=drops, waiting=waiting)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the kernel says: its listeners, half-closed connections and who holds sockets."""

    def tell(
        listeners: Sequence[Any] | None, half_closed: Sequence[At] | None = (), held: dict[int, set[int]] | None = None
    ) -> None:
        def said(known: Sequence[Any] | None) -> Any:
            if known is None:
                raise OSError("the kernel does not tell")
            return known

        ends = None if half_closed is None else [SimpleNamespace(local=at) for at in half_closed]
        monkeypatch.setattr(sockets, "listeners", lambda: said(listeners))
        monkeypatch.setattr(sockets, "half_closed", lambda: said(ends))
        monkeypatch.setattr(procfs, "open_sockets", (held or {}).get)

    return tell


def test_the_listeners_of_processes_are_those_whose_sockets_they_hold(told: Any) -> None:
    told([listener(HERE, 1, waiting=3), listener(OTHER, 2, waiting=9)], held={5: {1, 7}, 6: {8}})
    found = Listening.of([5, 6, 99])
    assert found is not None
    assert found.sample() == {"listen_drops": 0, "listen_queue": 3}
    assert Listening.of([6]) is None
    assert Listening.of([]) is None
    told(None, held={5: {1}})
    assert Listening.of([5]) is None


def test_drops_are_summed_with_those_of_sockets_that_closed(told: Any) -> None:
    own = Listening([HERE])
    told([listener(HERE, 1, drops=4, waiting=2), listener(HERE, 2, drops=1, waiting=1), listener(OTHER, 3, drops=90)])
    before = own.sample()
    assert before["listen_queue"] == 3
    told([listener(HERE, 2, drops=6)])
    after = own.sample()
    assert after["listen_drops"] - before["listen_drops"] == 5
    assert after["listen_queue"] == 0
    told(None)
    assert own.sample() == {}


def test_half_closed_connections_are_those_at_a_listener_or_at_any_address(told: Any) -> None:
    told([], [HERE, HERE, OTHER, At(IPv4Address("10.0.0.1"), 80)])
    assert Listening([HERE]).half_closed() == {"close_wait": 2}
    assert Listening([EVERYWHERE]).half_closed() == {"close_wait": 3}
    assert Listening([At(IPv4Address("10.0.0.9"), 443)]).half_closed() == {"close_wait": 0}
    told([], None)
    assert Listening([HERE]).half_closed() == {}
