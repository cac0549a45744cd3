"""Execute trials on pairs of hosts, which run them at the same time."""

import itertools
import queue
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from redline.errors import UsageError
from redline.extras.hosts.pairs import PairTools
from redline.extras.hosts.remote import CALL_S
from redline.model import AttachedServer, Plan, PlannedTrial, Suite
from redline.running.executors import LocalExecutor, Start, cells_of, starts_of
from redline.running.trial import AnyRecording, Step, TrialListener
from redline.storage.runs import RunStore
from redline.wording import part


class Shares:
    """Work left to do, by pair. With `retries`, other pairs take over the work of a lost pair."""

    def __init__(self, shares: Sequence[Sequence[Start]], retries: int) -> None:
        self._left = [deque(share) for share in shares]
        self._retries, self._tries = retries, Counter[int]()
        self._for_all: deque[Start] = deque()
        self._alive, self._busy = set(range(len(shares))), set[int]()
        self._is_over = False
        self._changed = threading.Condition()

    def take(self, pair: int) -> Start | None:
        """Return the next start of a pair, waiting while another pair may leave some; None if no work is left."""
        with self._changed:
            self._busy.discard(pair)
            self._changed.notify_all()
            while not self._is_over:
                if left := self._left[pair] or self._for_all:
                    self._busy.add(pair)
                    return left.popleft()
                if not self._busy and not any(self._left):
                    return None
                self._changed.wait()
            return None

    def leave(self, pair: int, left: Start) -> bool | None:
        """Give the other pairs the work of a pair that was lost during a step, and the step too if it may be retried.

        `left` is that step and the rest of its start. Returns whether others repeat the step; None if there
        are no other pairs, so that the pair goes on.
        """
        with self._changed:
            if self._alive == {pair} or not self._retries:
                return None
            position = left[0].position
            self._tries[position] += 1
            again = self._tries[position] <= self._retries
            self._alive.discard(pair)
            self._busy.discard(pair)
            wanted = left if again else left[1:]
            self._for_all += [wanted] if wanted else []
            self._for_all += self._left[pair]
            self._left[pair].clear()
            self._changed.notify_all()
            return again

    def end(self) -> None:
        """Note that no work is left."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


@dataclass(frozen=True)
class HostsExecutor:
    """Runs trials and duets of a plan on pairs of hosts, with their logs in the run's directory."""

    plan: Plan
    pairs: tuple[PairTools, ...]
    store: RunStore
    listener: TrialListener
    lost: list[PairTools] = field(default_factory=list)
    """Pairs that get no more work."""

    def execute(self, steps: Sequence[Step]) -> Iterator[AnyRecording]:
        """Run steps, in order on each pair. An interrupt ends the loads; unfinished steps have no recording."""
        pairs = [pair for pair in self.pairs if pair not in self.lost]
        if len(pairs) == 1:
            for start in starts_of(steps, self.plan):
                yield from self._run(pairs[0], start, self.listener)
            return
        made: queue.Queue[AnyRecording | BaseException | None] = queue.Queue()
        assigned = assigned_steps(steps, self.plan, len(pairs))
        shares = Shares([tuple(starts_of(share, self.plan)) for share in assigned], self.plan.suite.host_retries)
        listener = _OneAtATime(self.listener)
        threads = [
            threading.Thread(
                target=copy_context().run, args=(self._run_share, pair, number, shares, listener, made), daemon=True
            )
            for number, pair in enumerate(pairs)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from _until_all_ended(made, len(threads))
        finally:
            shares.end()
            if any(thread.is_alive() for thread in threads):
                for pair in pairs:
                    pair.interrupt()
            for thread in threads:
                thread.join(CALL_S)

    def _run_share(
        self,
        pair: PairTools,
        number: int,
        shares: Shares,
        listener: "_OneAtATime",
        made: "queue.Queue[AnyRecording | BaseException | None]",
    ) -> None:
        """Run the steps of the `number`-th pair, and put their recordings, and None at the end, into the queue."""
        try:
            while (start := shares.take(number)) is not None:
                for at, (step, recording) in enumerate(zip(start, self._run(pair, start, listener), strict=False)):
                    failed = recording.failure
                    again = shares.leave(number, start[at:]) if failed is not None and pair.is_lost else None
                    if again and failed is not None:
                        cells = cells_of(self.plan, step)
                        self.store.save_lost(recording, cells[0])
                        listener.moved(step, cells, failed)
                    else:
                        made.put(recording)
                    if again is not None:
                        self.lost.append(pair)
                        return
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            made.put(error)
        finally:
            made.put(None)

    def _run(self, pair: PairTools, start: Start, listener: Any) -> Iterator[AnyRecording]:
        tools = pair.tools if isinstance(start[0], PlannedTrial) else pair.duet_tools
        return LocalExecutor(self.plan, tools, self.store, listener).run(start)


def check_for_hosts(suite: Suite) -> None:
    """Raise UsageError if a suite cannot be measured on other hosts."""
    urls = [variant.entry for variant in suite.variants if isinstance(variant.entry, AttachedServer)]
    unreachable = next((f"a URL that no other host can reach, {url.name}" for url in urls if _is_of_here(url)), "")
    for has, what, hint in (
        (
            any(variant.is_own and not variant.is_attached for variant in suite.variants),
            "servers by their commands, containers or revisions",
            f"start them yourself, and give every server a `url: http://HOST:PORT`; or measure without {part('on')}",
        ),
        (bool(unreachable), unreachable, "write the address by which the load hosts reach it"),
        (
            any(url.way.proxy for url in urls),
            "a proxy in between, `proxy`",
            f"measure without {part('on')}, or let the load hosts reach the server directly",
        ),
        (any(url.way.sources for url in urls), "source addresses, `sources`", "remove them"),
        (
            any(variant.tls and variant.tls.cert for variant in suite.variants),
            "a certificate of the client, whose key is on this host",
            f"measure without {part('on')}, or a server that asks for no certificate",
        ),
        (
            any(variant.is_attached and variant.hops for variant in suite.variants),
            "a proxy in front of a URL",
            f"start the proxy yourself, and give its URL; or measure without {part('on')}",
        ),
        (suite.builds > 1, "several builds of each server", "leave out `builds`"),
        (bool(suite.profile), "profiles", "leave out `profile`; they can be made on the server's host itself"),
        (suite.why, "starts that say why servers differ", "leave out `why`"),
        (suite.driver is not None, "a driver of another package", "leave out `driver`"),
        (bool(suite.monitors), "monitors of other packages", "leave out `monitors`"),
        (suite.design == "parallel-duet", "parallel duets", "use `design: duet`"),
    ):
        if has:
            raise UsageError(f"{suite.name} has {what}, which cannot be had on several hosts", hint=hint)


def _is_of_here(server: AttachedServer) -> bool:
    """Whether the address is only for this machine: a loopback or unspecified address, or an address with a zone."""
    if server.way.connect:
        return any(place.socket or _is_local(place.host) for place in server.way.connect)
    return _is_local(server.host)


def _is_local(named: str) -> bool:
    host = named.rstrip(".").lower()
    address: IPv4Address | IPv6Address
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # short forms, such as 127.1
        except OSError:
            return host == "localhost" or host.endswith(".localhost")
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return address.is_loopback or address.is_unspecified or "%" in host


def assigned_steps(steps: Sequence[Step], plan: Plan, pairs: int) -> tuple[tuple[Step, ...], ...]:
    """Assign steps to pairs, in order. Compared cells share a pair in a round, and move to another in the next.

    So the pair cancels in the ratio of two servers, and every group of cells visits every pair.
    """

    def group(step: Step) -> tuple[int, str, str]:
        cell = cells_of(plan, step)[0]
        return step.round, cell.scenario.name, cell.load.name

    names = dict.fromkeys((cell.scenario.name, cell.load.name) for cell in plan.cells.values())
    numbers = {name: number for number, name in enumerate(names)}  # the plan's numbers: a round may be run in part
    shares: list[list[Step]] = [[] for _ in range(pairs)]
    for (round_, scenario, load), members in itertools.groupby(sorted(steps, key=group), key=group):
        shares[(numbers[scenario, load] + round_) % pairs] += members
    return tuple(tuple(sorted(share, key=lambda step: step.position)) for share in shares)


def _until_all_ended(made: "queue.Queue[AnyRecording | BaseException | None]", running: int) -> Iterator[AnyRecording]:
    """Yield recordings until `running` threads have ended. Raises what a thread raised."""
    while running:
        item = made.get()
        if isinstance(item, BaseException):
            raise item
        if item is None:
            running -= 1
        else:
            yield item


class _OneAtATime:
    """Calls a listener from several threads, one call at a time."""

    def __init__(self, listener: TrialListener) -> None:
        self._listener, self._lock = listener, threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._listener, name)

        def call(*arguments: Any) -> None:
            with self._lock:
                method(*arguments)

        return call
