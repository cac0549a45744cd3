"""The results of a selftest, as `redline selftest --json` prints them. Times are in ns, shares from 0 to 1."""

from typing import Literal

from pydantic import Field

from redline.model import Frozen

Judgement = Literal["ok", "off", "too noisy to say"]
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


class Quantile(Frozen):
    """A share of requests, and the response time that it does not exceed."""

    q: float = Field(description="1 is the largest")
    ns: float


class Point(Frozen):
    """A percentile of a case: the true value, the measured value, and whether the error is acceptable."""

    q: float = Field(description="1 is the largest")
    truth_ns: float = Field(description="the closed form plus this machine's round trip")
    low_ns: float = Field(description="by chance, the answer of a run of this length lies between this and `high_ns`")
    high_ns: float
    allowance_ns: float = Field(description="the server's own lateness at this percentile")
    answer_ns: float = Field(description="the value that Redline measured")
    error_ns: float = Field(description="answer minus truth")
    goal_ns: float = Field(description="the largest acceptable error, beyond chance and allowance")
    judgement: Judgement
    reason: str = Field(default="", description="why it is not ok")


class Check(Frozen):
    """A value other than a percentile, and its goal."""

    name: str
    value: float
    limit: float
    unit: Literal["ns", "distance", "requests"]
    judgement: Judgement
    reason: str = ""


class Noise(Frozen):
    """The noise of this machine while a case ran; null if unknown."""

    stolen_share: float | None = Field(description="of all cores' time, taken by the hypervisor")
    pressure_share: float | None = Field(description="of the time, some process waited for a core (PSI)")
    engine_waited_share: float | None = Field(description="of the time, the engine was ready to run and had no core")
    server_waited_share: float | None = Field(description="the same for the server")
    engine_late: tuple[Quantile, ...] = Field(description="from due to taken up")
    server_late: tuple[Quantile, ...] = Field(description="from the answer's due time to its write, as the server says")


class PeerAnswer(Frozen):
    """Another tool's answer to the same case."""

    peer: str
    version: str
    tried_with: str = Field(description="the version whose output its reader was written for")
    loop: Literal["open", "closed"] = Field(description="closed if the tool cannot hold a rate")
    points: tuple[Quantile, ...] = Field(description="only what it reports")
    note: str = ""


class CaseResult(Frozen):
    """A case with a known answer."""

    name: str
    about: str
    load: str
    measured_ns: int
    requests: int
    points: tuple[Point, ...]
    checks: tuple[Check, ...]
    noise: Noise
    peers: tuple[PeerAnswer, ...] = ()


class MachineFacts(Frozen):
    """The machine of the selftest."""

    cpu_model: str
    cores: int
    kernel: str
    engine: str
    server_cpus: tuple[int, ...]
    engine_cpus: tuple[int, ...]


class SelftestResult(Frozen):
    """`redline selftest --json`: true and measured values."""

    format: Literal["redline.selftest/1"] = "redline.selftest/1"
    judgement: Judgement = Field(description="off if anything is; too noisy to say if anything is and nothing is off")
    machine: MachineFacts
    round_trip: tuple[Quantile, ...] = Field(description="one connection, closed load, a server that does nothing")
    round_trip_drift_ns: float = Field(
        description="how far its median moved from the beginning of the selftest to its end"
    )
    resting_round_trip: tuple[Quantile, ...] = Field(description="the same with a pause of 1 ms between two requests")
    resting_round_trip_drift_ns: float
    sleeper: tuple[Quantile, ...] = Field(description="how late this machine wakes a loop that only sleeps")
    cases: tuple[CaseResult, ...]
