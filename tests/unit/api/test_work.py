"""What calls from Python do around a measurement: a call never waits for a server that it blocks itself."""

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from inspect import signature
from pathlib import Path

import pytest

import redline
from redline.api.results import RunResult, SearchResult
from redline.cli.own_loop import refuse_to_block
from redline.errors import DriveError, UsageError
from redline.linux.owners import Owner
from redline.model import Variant
from tests.fakes import asks


def _variants(*urls: str) -> tuple[Variant, ...]:
    return _suite(*({"url": url} for url in urls)).resolved(asks.of_suite())[0].variants


async def _closed(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def in_a_loop(use: Callable[[str], Awaitable[None]]) -> None:
    """Run code in an event loop beside a server of the same loop, with the server's URL."""

    async def main() -> None:
        async with await asyncio.start_server(_closed, "127.0.0.1", 0) as server:
            await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    asyncio.run(main())


OTHER = "http://127.0.0.1:9/"
LISTED = {
    "scenarios": [{"name": "home", "get": "/"}],
    "loads": {"load": {"open": {"rate": 100, "connections": 8}, "for": "1s"}},
}


def _suite(*servers: object) -> redline.Suite:
    return redline.Suite.from_dict({"servers": list(servers), **LISTED})


def _in_project(url: str, then: Callable[[], object], *others: str) -> None:
    servers = [{"name": name, "url": at} for name, at in zip(("ours", "theirs"), (url, *others), strict=False)]
    Path("redline.yaml").write_text(json.dumps({"servers": servers, "check": {"get": "/"}}))
    then()


def _limit_of_a_file(url: str) -> None:
    redline.limit(str(_suite({"url": url}).write("suite.yaml")), objective="p99 < 50ms")


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1].rstrip("/"))


CALLS: dict[str, list[Callable[[str], object]]] = {
    "load": [
        redline.load,
        lambda url: _in_project(url, redline.load),
        lambda url: redline.load("http://shop.test/", connect_to=f"shop.test:80:127.0.0.1:{_port(url)}"),
        lambda url: redline.load("https://shop.test/", proxy=url),
        lambda url: redline.load(url.replace("127.0.0.1", "localhost")),
    ],
    "ab": [
        lambda url: redline.ab(url, OTHER),
        lambda url: redline.ab(OTHER, url),
        lambda url: redline.ab("./shop --port {port}", url),
        lambda url: _in_project(url, redline.ab, OTHER),
    ],
    "limit": [
        lambda url: redline.limit(url, objective="p99 < 50ms"),
        lambda url: redline.limit(OTHER, url, objective="p99 < 50ms"),
        _limit_of_a_file,
        lambda url: _in_project(url, lambda: redline.limit(objective="p99 < 50ms")),
    ],
    "run": [
        lambda url: redline.run(_suite({"url": url})),
        lambda url: redline.run(_suite({"url": OTHER}, {"url": url})),
        lambda url: redline.run(_suite({"url": url}).write("suite.yaml")),
        lambda url: _in_project(url, redline.run),
    ],
}
"""The arguments and files that name the server of a call."""


def test_every_function_that_measures_is_held_to_its_event_loop() -> None:
    returned = {name: signature(getattr(redline, name), eval_str=True).return_annotation for name in redline.__all__}
    assert {name for name, result in returned.items() if result in {RunResult, SearchResult}} == set(CALLS)


@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_a_call_that_blocks_its_servers_event_loop_is_refused(
    call: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "--quiet"], check=True)

    async def use(url: str) -> None:
        with pytest.raises(UsageError) as raised:
            call(url)
        at = url.removeprefix("http://").rstrip("/")
        assert "runs in the event loop of this thread" in str(raised.value)
        assert str(_port(at)) in str(raised.value)
        assert "asyncio.to_thread" in str(raised.value)

    in_a_loop(use)


def test_a_unix_socket_of_the_event_loop_is_refused_too(tmp_path: Path) -> None:
    file = tmp_path / "shop.sock"

    async def main() -> None:
        async with await asyncio.start_unix_server(_closed, file):
            with pytest.raises(UsageError, match=r"unix:.*shop\.sock runs in the event loop"):
                redline.load("http://shop.test/", unix_socket=file)

    asyncio.run(main())


def test_another_machine_with_the_port_of_a_server_in_the_loop_may_be_loaded() -> None:
    async def use(url: str) -> None:
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="is another machine"):
            redline.load(f"http://203.0.113.7:{_port(url)}/")

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
        refuse_to_block(_variants(urls[0], OTHER))

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
    monkeypatch.setattr("redline.cli.own_loop.owner_of", lambda *_: Owner(pids=(pid if own else pid + 1,)))
    monkeypatch.setattr("redline.cli.own_loop._running_loop", object)
    with pytest.raises(UsageError) if own else nullcontext():
        refuse_to_block(_variants("http://127.0.0.1:8080/"))
