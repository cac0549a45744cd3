"""What calls from Python do around a measurement: a call never waits for a server that it blocks itself."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

import redline
from redline.api.work import at_work
from redline.errors import DriveError, UsageError
from redline.plugins.linux.owners import Owner


async def _closed(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def in_a_loop(use: Callable[[str], Awaitable[None]]) -> None:
    """Run code in an event loop beside a server of the same loop, with the server's URL."""

    async def main() -> None:
        async with await asyncio.start_server(_closed, "127.0.0.1", 0) as server:
            await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    asyncio.run(main())


@pytest.mark.parametrize(
    "call",
    [
        redline.load,
        lambda url: redline.ab(url, "http://127.0.0.1:9/"),
        lambda url: redline.ab("http://127.0.0.1:9/", url),
        lambda url: redline.limit(url, objective="p99 < 50ms"),
    ],
)
def test_a_call_that_blocks_its_servers_event_loop_is_refused(call: Callable[[str], object]) -> None:
    async def use(url: str) -> None:
        with pytest.raises(UsageError) as raised:
            call(url)
        assert f"{url} runs in the event loop of this thread" in str(raised.value)
        assert "asyncio.to_thread" in str(raised.value)

    in_a_loop(use)


def test_a_call_in_another_thread_reaches_the_server() -> None:
    async def use(url: str) -> None:
        with pytest.raises(DriveError):  # the server answers nothing, but it is asked
            await asyncio.to_thread(redline.load, url, duration="100ms")

    in_a_loop(use)


def test_servers_elsewhere_are_measured_from_an_event_loop() -> None:
    ready, ended, urls = threading.Event(), threading.Event(), list[str]()

    def serve() -> None:
        async def use(url: str) -> None:
            urls.append(url)
            ready.set()
            await asyncio.to_thread(ended.wait, 30)

        in_a_loop(use)

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait(30)

    async def main() -> None:
        with at_work(urls[0], "./shop --port {port}", "http://127.0.0.1:9/", "http://[", None):
            pass

    try:
        asyncio.run(main())
    finally:
        ended.set()
        thread.join(30)


@pytest.mark.parametrize("own", [True, False])
def test_a_loop_that_hides_its_files_counts_by_the_process_that_listens(
    monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    """As that of uvloop, which is no selector of Python's."""
    pid = os.getpid()
    monkeypatch.setattr("redline.api.work.owner_of", lambda *_: Owner(pids=(pid if own else pid + 1,)))
    monkeypatch.setattr("redline.api.work.asyncio.get_running_loop", object)
    with pytest.raises(UsageError) if own else nullcontext(), at_work("http://127.0.0.1:8080/"):
        pass
