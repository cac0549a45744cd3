"""`growing.py PORT BASE_US PER_1000_US WHAT`: answers after `BASE_US` of CPU time, and more for all that it holds.

With `WHAT` = `served` that is what it has answered; with `rows`, the rows that POST adds, which every GET reads:
`PER_1000_US` for each thousand.
"""

import asyncio
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Growing:
    """What a server holds, and what it costs."""

    def __init__(self, base_us: float, per_1000_us: float, what: str) -> None:
        self.base_ns, self.each_ns, self.what = base_us * 1e3, per_1000_us, what
        self.held = 0

    def work(self, request: bytes) -> None:
        """Spend the CPU time of a request."""
        is_post = request.startswith(b"POST")
        until_ns = time.thread_time_ns() + self.base_ns + (0 if is_post else self.each_ns * self.held)
        self.held += is_post or self.what == "served"
        while time.thread_time_ns() < until_ns:
            pass


class Connection(asyncio.Protocol):
    """A connection, whose requests have no bodies."""

    def __init__(self, server: Growing) -> None:
        self.server, self.rest = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for request in requests:
            self.server.work(request)
            self.transport.write(ANSWER)


async def serve(port: int, server: Growing) -> None:
    """Answer until killed."""
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(server), "127.0.0.1", port)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Growing(float(sys.argv[2]), float(sys.argv[3]), sys.argv[4])))
