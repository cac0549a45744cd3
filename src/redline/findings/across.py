"""Findings that only several servers under the same load show: what they have in common, and how one stands out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean, median_low

from redline.findings import cell, duet, failed, machine, steadiness
from redline.findings.rules import BUSY_SERVER, TOO_ALIKE, Observation, Rule
from redline.lazily import dataclass
from redline.model import Cell, Closed, Counts, Estimate, Finding, Grade, Metric
from redline.quantities import amount, percent

ALIKE = 0.02
"""Values that differ by at most this share, each known to it, count as the same."""
FEWEST_ALIKE = 3
"""With fewer servers, the same value is no surprise."""
RECONNECTS = 0.01
"""With a larger share of new connections, TLS handshakes are part of what is received for an answer."""


@dataclass(frozen=True, eq=False)
class SeenServer:
    """A server with a valid result under a load, by its used trials, at least one.

    `sizes` are the mean bytes received for an answer, by trial. `bodies` are those of the bodies alone, for each of
    several requests in the order of the scenario, in trials whose answers to it were all right. `server_share` is the
    used share of its cores, and `engine_share` that of the engine's time, in the median trial; None if not known.
    `findings` are those of its used trials, and of the cell.
    """

    cell: Cell
    estimates: Mapping[Metric, Estimate]
    counts: Counts
    sizes: tuple[float, ...]
    bodies: tuple[tuple[float, ...], ...]
    trials: int
    server_share: float | None
    engine_share: float | None
    findings: tuple[Finding, ...]

    @cached_property
    def protocol(self) -> dict[str, object]:
        """How the load speaks to it."""
        return self.cell.variant.protocol

    @property
    def name(self) -> str:
        """The server with its settings: `rust.axum`."""
        return self.cell.variant.slug

    @cached_property
    def reconnects(self) -> float:
        """Connections opened again per request; 0 if the load asks for them."""
        return failed.reconnected_share(self.cell, self.counts)

    def known(self, metric: Metric) -> float:
        """Its value, if the interval is narrow enough to call it equal to another; otherwise 0."""
        known = self.estimates.get(metric)
        if known is None or not known.low or not known.high:
            return 0.0
        return known.value if max(known.high / known.value, known.value / known.low) <= 1 + ALIKE else 0.0

    def trials_with(self, rule: Rule) -> int:
        """The number of its trials with a finding of this rule."""
        return len({finding.position for finding in self.findings if finding.kind == rule.kind})

    def warned_in(self, rule: Rule) -> int:
        """The number of its trials with a finding of this rule that is more than a note."""
        grave = (finding for finding in self.findings if finding.grade is not Grade.NOTE)
        return len({finding.position for finding in grave if finding.kind == rule.kind})


@dataclass(frozen=True)
class SeenAmong:
    """One of several servers under the same scenario and load, at `place` of all, which are in the plan's order."""

    servers: tuple[SeenServer, ...]
    place: int

    @property
    def own(self) -> SeenServer:
        """The server that is judged."""
        return self.servers[self.place]

    @property
    def others(self) -> Iterator[SeenServer]:
        """All others."""
        yield from (server for place, server in enumerate(self.servers) if place != self.place)

    @cached_property
    def alike(self) -> tuple[Metric, tuple[SeenServer, ...]]:
        """The most servers with the same throughput, else the same p50, and that metric; without servers if too few."""
        wanted = max(FEWEST_ALIKE, len(self.servers) // 3 + 2)
        asked = (Metric.THROUGHPUT, Metric.P50) if self.own.cell.load.saturates else (Metric.P50,)
        for metric in asked:
            most = _most_alike(self.servers, metric)
            if len(most) >= wanted:
                return metric, most
        return asked[0], ()


def _most_alike(servers: Sequence[SeenServer], metric: Metric) -> tuple[SeenServer, ...]:
    """The most servers, without those that are known to be busy, whose values are the same; ascending."""
    idle = (server for server in servers if server.server_share is None or server.server_share < BUSY_SERVER)
    ordered = sorted((value, place, server) for place, server in enumerate(idle) if (value := server.known(metric)))
    most: list[tuple[float, int, SeenServer]] = []
    first = 0
    for last, (value, _, _) in enumerate(ordered, 1):
        while value > ordered[first][0] * (1 + ALIKE):
            first += 1
        if last - first > len(most):
            most = ordered[first:last]
    return tuple(server for _, _, server in most)


@Rule("servers-alike", when="among", unit="", note=0.0, warn=1.0, biases=TOO_ALIKE)
def servers_alike(among: SeenAmong) -> Observation | None:
    """*Closed loads.* At least three servers, and two more than a third of all, have the same throughput, or else the
    same p50: they differ by at most 2%, are known to 2%, and use less than 85% of their cores. **note**; **warn** if
    another sign agrees: a [busy engine](#client-saturated), or a rate [near that of a server that does
    nothing](#near-ceiling).

    By chance, servers whose rates are spread over a factor of two look so in at most 5 of 100 groups. What they share
    is probably measured: the client, the machine, or what they all wait for. Where their use of cores is not known,
    only such a sign makes it a note.

    Advice: Compare CPU per request instead. For throughput, give the engine more cores or the load more users, until
    the servers' cores are full.
    """
    metric, alike = among.alike if isinstance(among.own.cell.load.shape, Closed) else (Metric.P50, ())
    if among.own not in alike:
        return None
    shares = [server.server_share for server in alike]
    known = [share for share in shares if share is not None]
    sign = _sign(alike)
    if len(known) < len(shares) and not sign:
        return None
    low, high = (amount(server.known(metric), metric.unit) for server in (alike[0], alike[-1]))
    of_them = f"{len(alike)} of {len(among.servers)} servers"
    used = f"used at most {percent(max(known))} of their cores" if len(known) == len(shares) else ""
    message = (
        f"{of_them} have the same {metric.words}, {low if low == high else f'{low} to {high}'}, and "
        f"{' and '.join(filter(None, (used, sign)))}: what they share is probably measured, which is the client, "
        "the machine, or what they all wait for."
    )
    return Observation(2.0 if sign and used else 1.0, message)


def _sign(alike: Sequence[SeenServer]) -> str:
    """The sign that the client or the machine is the limit of all of these servers; empty if there is none."""
    known = [server.engine_share for server in alike if server.engine_share is not None]
    if len(known) == len(alike) and machine.client_saturated.grade(least := min(known)):
        return f"the engine was busy at least {percent(min(least, 1.0))} of the time"
    if all(server.trials_with(cell.near_ceiling) for server in alike):
        return f"reached more than {percent(cell.near_ceiling.note or 0.0)} of what a server that does nothing reaches"
    return ""


@Rule("connections-differ", when="among", note=0.01, warn=0.10, biases="differences are those of opening connections")
def connections_differ(among: SeenAmong) -> Observation | None:
    """Connections opened again per request, beyond those of the server that has fewest, where the load keeps
    connections.

    The servers then do different work: a new connection costs more than many an answer.

    Advice: Let all servers keep connections (their keep-alive timeout and limit of requests), or ask for new ones from
    all by `requests_per_connection: 1`.
    """
    least = min(among.servers, key=lambda server: server.reconnects)
    share = among.own.reconnects
    message = (
        f"{among.own.name} was connected to again for {percent(min(share, 1.0))} of its requests, {least.name} for "
        f"{percent(least.reconnects) if least.reconnects else 'none'}: their work is not the same."
    )
    return Observation(share - least.reconnects, message)


@duet.answer_sizes.also("among")
def answer_sizes(among: SeenAmong) -> Observation | None:
    """The mean length of a server's answers, beside that of the median server with the same protocol.

    The values of all trials have to be apart: with several requests, the mean depends on which were drawn. So their
    bodies are compared request by request, whatever the protocol.
    """
    by_request = [said for place in range(len(among.own.bodies)) if (said := _body_sizes(among, place))]
    if by_request:
        furthest = max(by_request, key=lambda said: said.value)
        more = len(by_request) - 1
        others = f" So is it with {more} more of its requests." if more else ""
        return Observation(furthest.value, f"{furthest.message}{others}")
    same = [server for server in among.servers if _comparable(server, among.own)]
    if among.own not in same:
        return None
    usual = _usual([(server, server.sizes) for server in same], among.own.sizes)
    return duet.observe_sizes((usual.name, among.own.name), (_size(usual), _size(among.own))) if usual else None


def _body_sizes(among: SeenAmong, place: int) -> Observation | None:
    """The mean length of the bodies of a request, beside that of the median server; None if they are not apart."""
    known = [(server, server.bodies[place]) for server in among.servers if server.bodies and server.bodies[place]]
    own = dict(known).get(among.own, ())
    usual = _usual(known, own)
    if usual is None:
        return None
    label = among.own.cell.scenario.labels[place]
    ours, theirs = fmean(own), fmean(usual.bodies[place])
    message = (
        f"The body of an answer to {label} has {theirs:.0f} bytes from {usual.name}, {ours:.0f} from "
        f"{among.own.name}: do both do the same work?"
    )
    return _graded(Observation(abs(math.log((ours + 1) / (theirs + 1))), message))


def _graded(said: Observation) -> Observation | None:
    """The observation, if it is a finding."""
    return said if duet.answer_sizes.grade(said.value) else None


def _usual(known: Sequence[tuple[SeenServer, tuple[float, ...]]], own: tuple[float, ...]) -> SeenServer | None:
    """The server with the median of these mean lengths by trial, if they are all apart from its own."""
    if not own:
        return None
    middle = median_low(fmean(sizes) for _, sizes in known)
    usual, theirs = next((server, sizes) for server, sizes in known if fmean(sizes) == middle)
    return None if max(own) >= min(theirs) and max(theirs) >= min(own) else usual


def _comparable(server: SeenServer, own: SeenServer) -> bool:
    """Whether bytes count the same of both: by the same protocol, and without many handshakes."""
    handshakes = server.cell.variant.tls is not None and server.reconnects > RECONNECTS
    return server.protocol == own.protocol and bool(server.sizes) and not handshakes


def _size(server: SeenServer) -> float:
    return fmean(server.sizes)


@Rule("one-sided", when="among", note=0.0, warn=0.5, biases="differences are partly those of quotas or compilers")
def one_sided(among: SeenAmong) -> Iterator[Observation]:
    """Trials of a server with a warning that it was [throttled](#throttled) or [still-compiling](#still-compiling),
    where another server has no such finding.

    What slows all servers alike spares their ratios. What slows one of them is in its ratios.

    Advice: Give all servers the same quota, and warm up until the compilers rest; or read the ratio as one of both.
    """
    kinds = ((machine.throttled, "A CPU quota was used up"), (steadiness.still_compiling, "Compilers were still busy"))
    for rule, what in kinds:
        spared = next((server for server in among.others if not server.trials_with(rule)), None)
        warned, trials = among.own.warned_in(rule), among.own.trials
        if spared is not None and warned:
            message = f"{what} in {warned} of {trials} trials of {among.own.name}, and in none of {spared.name}."
            yield Observation(warned / trials, message)
