"""Connections that send nothing keep nobody out of the servers on the loopback address, and use up no threads."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from redline.extras.telemetry import openmetrics
from redline.extras.telemetry.meter import SummingMeter
from redline.viewing.loopback import ADDRESS, MOST_CONNECTIONS
from redline.viewing.server import listening
from redline.viewing.site import Site
from tests.fakes import targets


@contextmanager
def metrics() -> Iterator[int]:
    port = targets.unused_port()
    with openmetrics.served(SummingMeter(), port):
        yield port


@contextmanager
def view() -> Iterator[int]:
    with listening(Site([]), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("served", [metrics, view])
def test_idle_connections_have_a_limit_and_keep_nobody_out(served: Callable[[], AbstractContextManager[int]]) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(served())
        before = threading.active_count()
        idle = [stack.enter_context(socket.create_connection((ADDRESS, port))) for _ in range(MOST_CONNECTIONS + 20)]
        with socket.create_connection((ADDRESS, port), timeout=5) as own:
            own.sendall(b"GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert own.recv(4096).startswith(b"HTTP/1.0 40")
        # The oldest were closed, and the newest are open.
        idle[0].settimeout(5)
        assert idle[0].recv(1) == b""
        idle[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            idle[-1].recv(1)
        until = time.monotonic() + 5
        while threading.active_count() - before > MOST_CONNECTIONS and time.monotonic() < until:
            time.sleep(0.01)
        assert threading.active_count() - before <= MOST_CONNECTIONS
