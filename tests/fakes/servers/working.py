"""`working.py PORT`: answers `/heavy` after 10 ms of its own CPU time, and all else after 1 ms."""

import asyncio
import sys
import time

LIGHT_NS, HEAVY_NS = 1_000_000, 10_000_000


class Worker(asyncio.Protocol):
    """A connection, whose requests have no bodies."""

    def __init__(self) -> None:
        self.held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self.held = (self.held + data).split(b"\r\n\r\n")
        for request in requests:
            until_ns = time.thread_time_ns() + (HEAVY_NS if request.startswith(b"GET /heavy ") else LIGHT_NS)
            while time.thread_time_ns() < until_ns:
                pass
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def serve(port: int) -> None:
    """Answer until killed."""
    listener = await asyncio.get_running_loop().create_server(Worker, "127.0.0.1", port)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
