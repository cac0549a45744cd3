"""CPU time per message of clients: Redline beside public Python clients, on the oracle.

`python -m bench.messages [--python PYTHON] [--seconds 5] [--rounds 3]`. PYTHON has the packages of the peers:
`websockets`, `aiohttp` and `openai`; a peer whose package it lacks is left out by name. CPU time is that of the whole
process of a client, so `redline load` with its Python, of two loads of which one is a quarter as long: their difference
has no start in it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.rig import Oracle, build_oracle, engine_version, machine, running

REDLINE = Path(sys.executable).with_name("redline")
CONNECTIONS, TALKS = 64, 64
TOKENS, EVENTS = 61, 64
SIZE = 64

ECHO_WEBSOCKETS = """
import asyncio, sys, time, websockets
async def user(url, until):
    async with websockets.connect(url, compression=None) as socket:
        while time.monotonic() < until:
            await socket.send("x" * 64)
            await socket.recv()
async def main():
    until = time.monotonic() + float(sys.argv[2])
    await asyncio.gather(*(user(sys.argv[1], until) for _ in range(int(sys.argv[3]))))
asyncio.run(main())
"""
ECHO_AIOHTTP = """
import asyncio, sys, time, aiohttp
async def user(session, url, until):
    async with session.ws_connect(url) as socket:
        while time.monotonic() < until:
            await socket.send_str("x" * 64)
            await socket.receive_str()
async def main():
    until = time.monotonic() + float(sys.argv[2])
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(user(session, sys.argv[1], until) for _ in range(int(sys.argv[3]))))
asyncio.run(main())
"""
CHAT_OPENAI = """
import asyncio, sys, time, openai
async def user(client, until):
    while time.monotonic() < until:
        asked = [{"role": "user", "content": "How far is it?"}]
        async for part in await client.chat.completions.create(model="it", messages=asked, stream=True):
            pass
async def main():
    until = time.monotonic() + float(sys.argv[2])
    async with openai.AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0) as client:
        await asyncio.gather(*(user(client, until) for _ in range(int(sys.argv[3]))))
asyncio.run(main())
"""


@dataclass(frozen=True)
class Client:
    """A program that loads a server: `{url}`, `{seconds}` and `{users}` are filled in."""

    name: str
    package: str
    """What its Python has to have; empty for Redline."""
    command: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """What is asked of an oracle, and by whom."""

    title: str
    oracle: tuple[str, ...]
    path: str
    users: int
    clients: tuple[Client, ...]

    def messages(self, oracle: Oracle) -> int:
        """How many messages the oracle answered or sent."""
        assert oracle.seen is not None
        return oracle.seen.messages or TOKENS * oracle.seen.requests


LOAD = (str(REDLINE), "load", "{url}", "-c", "{users}", "-d", "{seconds}s", "--warmup", "0s")
CASES = (
    Case(
        f"echo of {SIZE} bytes, {CONNECTIONS} WebSockets",
        (),
        "ws://{host}/echo",
        CONNECTIONS,
        (
            Client("redline", "", (*LOAD, "--body", "x" * SIZE)),
            Client("redline over HTTP/2", "", (*LOAD, "--http2", "--body", "x" * SIZE)),
            Client("websockets", "websockets", ("-c", ECHO_WEBSOCKETS, "{url}", "{seconds}", "{users}")),
            Client("aiohttp", "aiohttp", ("-c", ECHO_AIOHTTP, "{url}", "{seconds}", "{users}")),
        ),
    ),
    Case(
        f"chat completions of {EVENTS} events 10 ms apart, {TALKS} users",
        ("--events", str(EVENTS), "--event-gap", "10ms", "--tokens"),
        "http://{host}/v1/chat/completions",
        TALKS,
        (
            Client("redline", "", (*LOAD, "-X", "POST", "--body", '{"stream": true}', "--events", "openai")),
            Client("openai", "openai", ("-c", CHAT_OPENAI, "{url}", "{seconds}", "{users}")),
        ),
    ),
)


def cost(case: Case, client: Client, python: str, seconds: float) -> tuple[float, int]:
    """The CPU seconds of a load of so many seconds, and the messages of it."""
    program = () if not client.package else (python,)
    with running(build_oracle(), "null", "--report", *case.oracle, cpu=min(os.sched_getaffinity(0))) as oracle:
        url = case.path.replace("{host}", f"{oracle.endpoint.host}:{oracle.endpoint.port}")
        if client.package == "openai":
            url = url.removesuffix("/chat/completions")
        values = {"{url}": url, "{seconds}": f"{seconds:g}", "{users}": str(case.users)}
        command = [*program, *(values.get(part, part.replace("{seconds}", f"{seconds:g}")) for part in client.command)]
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, stdout=said, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in {0, 1}:
                said.seek(0)
                raise RuntimeError(f"{client.name}: {said.read()[-500:].decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, case.messages(oracle)


def microseconds(case: Case, client: Client, python: str, seconds: float) -> float:
    """CPU time per message, of the difference of a long load and a short one."""
    (long_s, many), (short_s, few) = (cost(case, client, python, each) for each in (seconds, seconds / 4))
    return (long_s - short_s) / (many - few) * 1e6


def has(python: str, package: str) -> bool:
    """Whether this Python has a package."""
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(prog="python -m bench.messages", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the Python with the packages of the peers")
    parser.add_argument("--seconds", type=float, default=5, help="length of the longer load (5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each client runs, in turns (3)")
    flags = parser.parse_args()
    print(f"{machine()}; {engine_version()}")
    for case in CASES:
        known = [client for client in case.clients if not client.package or has(flags.python, client.package)]
        rounds = [{each.name: microseconds(case, each, flags.python, flags.seconds) for each in known}
                  for _ in range(flags.rounds)]  # fmt: skip
        print(f"\n{case.title}\n\n| client | CPU per message | over redline |\n|---|---:|---:|")
        for client in case.clients:
            if client not in known:
                print(f"| {client.name} | its package is not there | |")
                continue
            own = median(each[client.name] for each in rounds)
            over = sorted(each[client.name] / each["redline"] for each in rounds)
            print(f"| {client.name} | {own:.1f} µs | {median(over):.1f} ({over[0]:.1f}-{over[-1]:.1f}) |")


if __name__ == "__main__":
    main()
