"""A server whose service time changes, from start to start or while it runs: `changing.py PORT HABIT FOLDER`.

It waits and does not compute, all requests at once and in one thread, so that how busy the machine is changes little.
FOLDER keeps how often it was started.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

ONE_S = 0.01
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

OF_STARTS: dict[str, tuple[float, ...]] = {
    "ageing": tuple(2 * 1.25**start for start in range(8)),
    "twofold": (2, 8, 8, 2, 8, 2, 2, 8),
    "wandering": tuple(2 * 1.45 ** min(start, 11 - start) for start in range(12)),
    "differing": (3.4, 5.0, 2.0, 4.1, 2.3, 4.4, 2.8, 2.1, 3.7, 2.5, 3.1, 4.7),
}
"""Service times of consecutive starts, in units of ONE_S. Those of `differing` differ, without a pattern."""


def jumping(for_s: float) -> float:
    """Three times as slow in every other stretch of 0.6 s."""
    return 3.0 if for_s % 1.2 < 0.6 else 1.0


def tiring(for_s: float) -> float:
    """Half as fast after a second."""
    return 4.0 if for_s > 1.0 else 2.0


def swelling(for_s: float) -> float:
    """Twice as slow with every second."""
    return float(2**for_s)


def even(_for_s: float) -> float:
    """Always the same."""
    return 5.0


IN_TIME: dict[str, Callable[[float], float]] = {each.__name__: each for each in (jumping, tiring, swelling, even)}
HABITS = (*OF_STARTS, *IN_TIME)


def start_of(habit: str, folder: Path) -> int:
    """The number of this start, from 0. A server is alone with its habit, so nobody else writes there."""
    file = folder / f"{habit}.starts"
    before = int(file.read_text()) if file.exists() else 0
    file.write_text(str(before + 1))
    return before


def service(habit: str, folder: Path) -> Callable[[], float]:
    """The present service time, in seconds."""
    if habit in OF_STARTS:
        times = OF_STARTS[habit]
        of_this_start = ONE_S * times[start_of(habit, folder) % len(times)]
        return lambda: of_this_start
    began_s = time.monotonic()
    return lambda: ONE_S * IN_TIME[habit](time.monotonic() - began_s)


class Connection(asyncio.Protocol):
    """Answers every request after its service time."""

    def __init__(self, service_s: Callable[[], float]) -> None:
        self._service_s = service_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(data.count(b"\r\n\r\n")):
            loop.call_later(self._service_s(), self._transport.write, ANSWER)


async def serve(port: int, service_s: Callable[[], float]) -> None:
    """Answer for ever."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(service_s), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), service(sys.argv[2], Path(sys.argv[3]))))
