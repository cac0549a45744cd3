"""The tools: how each is called with a list of requests, and what it says of a run."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.cost.peers import FOLDER, find
from bench.traffic import sends
from bench.traffic.sends import Send
from redline.errors import DriveError
from redline.extras.peers import PeerLoad, PeerOutput

REDLINE = Path(sys.executable).with_name("redline")
USERS = 64
JAVA_HERE = Path(__file__).parent
_GLOBAL = re.compile(r"> Global\s*\|\s*[\d,]+\s*\|\s*([\d,]+)\s*\|\s*([\d,]+)")


@dataclass(frozen=True)
class Wanted:
    """The requests that every user sends in turn, to the server of that URL; files go below `scratch`.

    `events`: the answers are streams of them.
    """

    requests: Sequence[Send]
    base: str
    seconds: float
    scratch: Path
    events: bool = False

    @property
    def millis(self) -> int:
        """The length."""
        return round(self.seconds * 1000)

    @property
    def journey(self) -> bool:
        """Whether later requests need what earlier ones got."""
        return any(send.takes for send in self.requests)

    def load(self, url: str = "", extra: tuple[str, ...] = ()) -> PeerLoad:
        """The load as the adapters of peers take it."""
        url = url or self.base + self.requests[0].path
        return PeerLoad(url, USERS, self.seconds, self.scratch, extra=extra)

    def file(self, name: str, text: str) -> Path:
        """A file for a tool."""
        path = self.scratch / name
        path.write_text(text)
        return path


@dataclass(frozen=True)
class Called:
    """A command that puts the load on the server, and how its output is read."""

    command: Sequence[str]
    read: Callable[[str], PeerOutput]


@dataclass(frozen=True)
class Tool:
    """A load generator that was found. `lacks` says what of a list it cannot send; `journeys`, whether it has any."""

    name: str
    version: str
    call: Callable[[Wanted], Called]
    lacks: str = ""
    journeys: bool = False


@dataclass(frozen=True)
class Tools:
    """Those that were found, in the order of the table, and why others were not."""

    found: tuple[Tool, ...]
    missing: dict[str, str] = field(default_factory=dict)


def redline(name: str = "redline", journeys: Callable[[Sequence[Send]], str] = sends.as_journey) -> Tool:
    """The whole command, with Python and the engine; `journeys` writes the file of a journey."""

    def call(wanted: Wanted) -> Called:
        written = journeys(wanted.requests) if wanted.journey else sends.as_list(wanted.requests)
        listed = wanted.file("requests.json", written)
        path = wanted.requests[0].path if wanted.events else "/"
        flags = ["--events", "sse"] if wanted.events else ["--requests", str(listed)]
        flags += ["-c", str(USERS), "-d", f"{wanted.millis}ms", "--warmup", "0s", "--json"]
        return Called([str(REDLINE), "load", wanted.base + path, *flags], _read_redline)

    return Tool(name, _first_line([str(REDLINE), "--version"]), call, journeys=True)


def _read_redline(output: str) -> PeerOutput:
    result = json.loads(output)
    counts = result["counts"]
    wrong = {kind: n for kind, n in counts["outcomes"].items() if n and kind != "ok"}
    faults = [f"{n} {kind}" for kind, n in wrong.items()]
    faults += [] if result["ended"] == "complete" else [f"ended by {result['ended']}"]
    return PeerOutput(requests=counts["completed"], rate_per_s=result["throughput"]["value"], faults=", ".join(faults))


def peers(java: Path) -> Tools:
    """All that are installed; `java` is a folder for classes."""
    found, missing = [], {}
    for name, make in _ADAPTED.items():
        if find(name) is None:
            missing[name] = "not installed"
        else:
            found.append(make(name))
    for name, in_java in (("Gatling", gatling), ("Hyperfoil", hyperfoil)):
        try:
            found.append(in_java(java))
        except DriveError as error:
            missing[name] = " ".join(str(error).split())
    return Tools(tuple(found), missing)


def _adapted(name: str, requests: Callable[[Wanted], tuple[str, tuple[str, ...]]], lacks: str = "") -> Tool:
    """A peer with an adapter; `requests` gives the URL and further arguments for them."""
    peer = find(name)
    assert peer is not None

    def call(wanted: Wanted) -> Called:
        url, extra = requests(wanted)
        return Called([peer.binary, *peer.adapter.commands(wanted.load(url, extra))[0]], peer.adapter.read)

    return Tool(name, peer.version, call, lacks)


def _wrk(name: str) -> Tool:
    def requests(wanted: Wanted) -> tuple[str, tuple[str, ...]]:
        if len(wanted.requests) == 1:
            return "", ()
        return "", ("-s", str(wanted.file("wrk.lua", sends.as_lua(wanted.requests))))

    return _adapted(name, requests)


def _h2load(name: str) -> Tool:
    def requests(wanted: Wanted) -> tuple[str, tuple[str, ...]]:
        return "", ("-i", str(wanted.file("urls", sends.as_urls(wanted.requests, wanted.base))))

    return _adapted(name, requests, "bodies")


def _oha(name: str) -> Tool:
    def requests(wanted: Wanted) -> tuple[str, tuple[str, ...]]:
        if len(wanted.requests) == 1:
            return "", ()
        listed = wanted.file("urls", sends.as_urls(wanted.requests, wanted.base))
        return str(listed), ("--urls-from-file",)

    return _adapted(name, requests, "bodies")


def _vegeta(name: str) -> Tool:
    """Vegeta, whose report is made by a second call that costs nothing here."""
    peer = find(name)
    assert peer is not None

    def call(wanted: Wanted) -> Called:
        attack, report = peer.adapter.commands(wanted.load(extra=("-format=json",)))
        wanted.file("vegeta.targets", sends.as_targets(wanted.requests, wanted.base))

        def read(_output: str) -> PeerOutput:
            done = subprocess.run([peer.binary, *report], capture_output=True, text=True, check=True, timeout=120)
            return peer.adapter.read(done.stdout)

        return Called([peer.binary, *attack], read)

    return Tool(name, peer.version, call)


_ADAPTED: dict[str, Callable[[str], Tool]] = {"wrk": _wrk, "h2load": _h2load, "oha": _oha, "vegeta": _vegeta}


def gatling(classes: Path) -> Tool:
    """Gatling with the simulation in `Traffic.java`. Raises DriveError where its jars or a JDK are missing."""
    jars = _jars("gatling", "gatling-http-java")
    folder = _compiled(classes, "Traffic", jars)
    quiet = '<configuration><root level="ERROR"/></configuration>'
    (folder / "logback.xml").write_text(quiet)

    def call(wanted: Wanted) -> Called:
        listed = wanted.file("lines", sends.as_lines(wanted.requests))
        properties = {"base": wanted.base, "users": USERS, "millis": wanted.millis, "requests": listed}
        properties |= {"journey": str(wanted.journey).lower(), "gatling.data.enableAnalytics": "false"}
        # Its own launchers add this too, for its log of results.
        java = ["java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", f"{folder}:{jars}/*"]
        defined = [f"-D{key}={value}" for key, value in properties.items()]
        simulation = ["io.gatling.app.Gatling", "-s", "Traffic", "-nr", "-rf", str(wanted.scratch / "gatling")]
        return Called([*java, *defined, *simulation], lambda output: read_gatling(output, wanted.seconds))

    return Tool("Gatling", _version(jars, "gatling-core"), call, journeys=True)


def read_gatling(output: str, seconds: float) -> PeerOutput:
    """Read the last of the tables that it prints."""
    tables = _GLOBAL.findall(output)
    if not tables:
        return PeerOutput()
    ok, wrong = (int(number.replace(",", "")) for number in tables[-1])
    return PeerOutput(requests=ok, rate_per_s=ok / seconds, faults=f"{wrong} KO" if wrong else "")


def hyperfoil(classes: Path) -> Tool:
    """Hyperfoil in one process, by `Hyperfoil.java`. Raises DriveError where its jars or a JDK are missing."""
    jars = _jars("hyperfoil", "hyperfoil-http")
    folder = _compiled(classes, "Hyperfoil", jars)

    def call(wanted: Wanted) -> Called:
        text = sends.as_hyperfoil(wanted.requests, wanted.base, USERS, wanted.millis)
        command = ["java", "-cp", f"{folder}:{jars}/*", "Hyperfoil", str(wanted.file("hyperfoil.yaml", text))]
        return Called(command, lambda output: read_hyperfoil(output, wanted.seconds))

    return Tool("Hyperfoil", _version(jars, "hyperfoil-core"), call, journeys=True)


def read_hyperfoil(output: str, seconds: float) -> PeerOutput:
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        return PeerOutput()
    counts = json.loads(lines[-1])
    wrong = counts["answered"] - counts["ok"] + counts["errors"]
    return PeerOutput(
        requests=counts["ok"], rate_per_s=counts["ok"] / seconds, faults=f"{wrong} wrong" if wrong else ""
    )


def _jars(tool: str, needed: str) -> Path:
    """The folder with the jars of a tool and all that they depend on."""
    named = os.environ.get(FOLDER)
    folder = Path(named or ".") / tool
    if named is None or not any(folder.glob(f"{needed}-*.jar")):
        raise DriveError("not installed", hint=f"put {needed} and what it depends on into $REDLINE_PEERS/{tool}")
    return folder.absolute()


def _version(jars: Path, artifact: str) -> str:
    """The version in the name of its jar."""
    pattern = re.compile(rf"{artifact}-(\d[\w.]*)\.jar")
    found = (pattern.fullmatch(jar.name) for jar in jars.glob(f"{artifact}-*.jar"))
    return next((match[1] for match in found if match), "")


def _compiled(classes: Path, name: str, jars: Path) -> Path:
    """A folder with the class of that name. Raises DriveError without a compiler, and where it does not compile."""
    if shutil.which("javac") is None:
        raise DriveError("needs javac, which is not installed", hint="install a JDK")
    folder = classes / name
    command = ["javac", "-d", str(folder), "-cp", f"{jars}/*", str(JAVA_HERE / f"{name}.java")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise DriveError(f"does not compile: {done.stderr.strip()[:300]}", hint="another version of the tool?")
    return folder


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()[0].removeprefix("redline ")
