"""What coordinating many load hosts costs the lab: messages, CPU time and memory.

    python -m tests.studies.load_hosts 1 10 100 1000

Every host reports what a simulated engine saw: one second in ten intervals, 24,000 requests. Nothing is sent over a
network, so the figures are the lab's own work: making the parts, reading what hosts report, and adding their counts.
"""

import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redline.extras.hosts.agent import HostAgent, HostReport
from redline.extras.hosts.engine import Ended
from redline.extras.hosts.remote import PartsDriver
from redline.model import Closed, Role, Traffic
from redline.ports import Drive, Endpoint
from tests.fakes.recordings import simulated_cell, simulated_recording


@dataclass(frozen=True)
class Ready:
    """A call that has been answered."""

    found: Any

    def result(self, within_s: float) -> Any:
        del within_s
        return self.found


@dataclass
class Reporting:
    """A load host that has done its part already."""

    report: HostReport
    ended: Ended
    role: Role = "load"
    calls: list[str] = field(default_factory=list)

    def submit(self, method: str, *arguments: Any) -> Ready:
        del arguments
        self.calls.append(method)
        connected = {"event": "connected", "connections": 64, "connect_ns": 1, "backend": "none"}
        return Ready({"connect": connected, "finish": (self.ended, ())}.get(method, ()))


def lines_of(traffic: Traffic) -> tuple[str, ...]:
    """The output of an engine with this traffic."""
    fields = traffic.model_dump(mode="json")
    intervals = fields.pop("intervals")
    begun = {name: fields.pop(name) for name in ("engine", "connections", "connect_ns", "epoch_unix_ns")}
    started = {"event": "started", "format": "redline.engine/1", **begun}
    events = [started, *({"event": "interval", **each} for each in intervals), {"event": "result", **fields}]
    return tuple(json.dumps(event) for event in events)


def study(number: int, report: HostReport, ended: Ended) -> tuple[int, float, float]:
    """Messages, seconds of CPU time, and MB at the most, of a load from this many hosts."""
    hosts = [Reporting(replace(report, name=f"load-{n}"), ended) for n in range(number)]
    cell = simulated_cell()
    shape = Closed(users=64 * number)
    cell = cell.model_copy(update={"warmup_ns": 0, "load": cell.load.model_copy(update={"shape": shape})})
    log = Path(tempfile.gettempdir()) / "unused.log"
    driver = PartsDriver(hosts, None)
    begun = time.process_time()
    traffic = driver.drive(Drive(cell=cell, endpoint=Endpoint("10.0.0.1", 80), seed=1, cpus=(), workers=1, log=log))
    took_s = time.process_time() - begun
    assert traffic.counts.due == sum(share.counts.due for share in driver.shares.values())
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return sum(len(host.calls) for host in hosts), took_s, most_mb


def main(numbers: list[int]) -> None:
    with tempfile.TemporaryDirectory() as cache:
        report = HostAgent("127.0.0.1", "load", Path(cache)).report()
    traffic = simulated_recording(simulated_cell()).traffic
    assert traffic is not None
    ended = Ended(lines_of(traffic), 0, "")
    print(f"each host reports {sum(map(len, ended.lines)) / 1024:.0f} KiB")
    print(f"{'hosts':>6} {'messages':>9} {'CPU s':>7} {'CPU ms/host':>12} {'MB':>6}")
    for number in numbers:
        read, write = os.pipe()
        if not (pid := os.fork()):  # memory is the most that a process has ever had
            os.write(write, json.dumps(study(number, report, ended)).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        messages, took_s, most_mb = json.loads(os.read(read, 1 << 16))
        print(f"{number:6} {messages:9} {took_s:7.2f} {1000 * took_s / number:12.2f} {most_mb:6.0f}")


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [1, 10, 100, 1000])
