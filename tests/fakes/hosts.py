"""Agents without a network: hosts that are this machine, called as those of a cluster are."""

import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redline.extras.hosts.agent import HostAgent, HostReport
from redline.extras.hosts.remote import HostLostError, Pair
from redline.model import Role


@dataclass(frozen=True)
class NearPending:
    """A call in a thread."""

    future: "Future[bytes]"
    name: str

    def result(self, within_s: float) -> Any:
        try:
            succeeded, found = pickle.loads(self.future.result(within_s))
        except LateError:
            raise HostLostError(f"{self.name} is lost: it has not answered for {within_s} s", hint="wait") from None
        if not succeeded:
            raise found
        return found


@dataclass
class NearHost:
    """An agent of this process; its arguments and results are pickled. `is_lost` cuts it off."""

    agent: HostAgent
    role: Role
    name: str
    is_lost: bool = False
    calls: list[str] = field(default_factory=list)
    _report: HostReport | None = None
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    @property
    def report(self) -> HostReport:
        if self._report is None:
            self._report = self.agent.report()
        return replace(self._report, name=self.name)

    def submit(self, method: str, *arguments: Any) -> NearPending:
        self.calls.append(method)
        if self.is_lost:
            raise HostLostError(f"{self.name} is lost", hint="see whether it runs, and its network")
        sent = pickle.dumps((method, arguments))
        return NearPending(self._threads.submit(lambda: pickle.dumps(self.agent.call(*pickle.loads(sent)))), self.name)

    def end(self) -> None:
        """End everything that runs there."""
        self.agent.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


def near_pair(cache: Path, loads: int = 1, number: int = 0, *, proxy: bool = False) -> Pair:
    """A host for servers, several that load it, and maybe a host for proxies, all of which are this machine."""
    of = f"-of-{number}" if number else ""

    def host(role: Role, name: str) -> NearHost:
        return NearHost(HostAgent("127.0.0.1", role, cache / name), role, name)

    of_load = tuple(host("load", f"load-{n}{of}") for n in range(loads))
    return Pair(host("server", f"server-0{of}"), of_load, host("proxy", f"proxy-0{of}") if proxy else None)


def end(pair: Pair) -> None:
    """End everything."""
    for host in pair.hosts:
        assert isinstance(host, NearHost)
        host.end()
