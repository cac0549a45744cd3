"""Routes as a user meets them: a server directly and behind proxies, in runs, duets and searches."""

import re
import shutil
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from redline.model import Metric, Recording, Report, Run
from redline.storage.runs import RunStore
from tests.e2e.compared import compared
from tests.e2e.conftest import CHECKOUT, Done, Redline
from tests.e2e.lab import BUILD, SCENARIOS, SERVER
from tests.e2e.leftovers import exists_below, left_of
from tests.e2e.recorded import answered
from tests.fakes import targets
from tests.fakes.certificates import write_certificate
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

PROXY = Path(__file__).parents[1] / "fakes" / "servers" / "proxy.py"
RELAY = f"[{sys.executable}, -I, -S, {PROXY}, '{{port}}', relay, '{{upstream_host}}', '{{upstream_port}}']"
FRONT = f"""\
about: proxies that pass on what arrives
runtime: python
kind: proxy
{BUILD}
ready: {{within: 10s}}
servers:
  relay: {{about: relays, protocols: [h1], upstream: [h1], start: {{command: {RELAY}}}}}
  boaster:
    about: would speak HTTP/2 to the server
    protocols: [h1]
    upstream: [h2c]
    start: {{command: {RELAY}}}
  stubborn:
    about: answers 502
    protocols: [h1]
    upstream: [h1]
    ready: {{within: 3s}}
    start: {{command: {RELAY.replace("relay", "stubborn")}}}
"""

NGINX = """\
about: nginx in front, with the protocols that it has
runtime: native
kind: proxy
build: {run: [MAKE, out], inputs: [server.yaml, start], outputs: [out/ca.pem]}
tls: {ca: out/ca.pem, server_name: localhost}
ready: {within: 10s}
servers:
  nginx:
    about: nginx
    protocols: [h1, h1+tls, h2c, h2+tls]
    upstream: [h1, h1+tls]
    start:
      command: [bash, ./start, "{port}", "{protocol}", "{scratch}"]
      env: {UPSTREAM: "{upstream_host}:{upstream_port}", BEHIND: "{upstream_protocol}", AUTHORITY: "{upstream_ca}"}
"""

START_NGINX = """\
set -eu
port=$1 protocol=$2 scratch=$3
listen="127.0.0.1:$port"; secure=""; behind="http://behind"
if [[ $protocol == *+tls ]]; then
  listen+=" ssl"; secure="ssl_certificate $PWD/out/server.pem; ssl_certificate_key $PWD/out/server.key;"
fi
if [[ $protocol == h2* ]]; then listen+=" http2"; fi
if [[ $BEHIND == *+tls ]]; then
  behind="https://behind"
  secure+=" proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate $AUTHORITY;"
fi
cat >"$scratch/nginx.conf" <<END
daemon off; worker_processes 1; pid $scratch/pid; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path $scratch/b; proxy_temp_path $scratch/p; fastcgi_temp_path $scratch/f;
  uwsgi_temp_path $scratch/u; scgi_temp_path $scratch/s; keepalive_requests 1000000000;
  upstream behind { server $UPSTREAM; keepalive 64; keepalive_requests 1000000000; }
  server { listen $listen; $secure
    location / { proxy_pass $behind; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}
END
exec nginx -p "$scratch" -e stderr -c "$scratch/nginx.conf"
"""

SUITE = """\
servers: {servers}
routes:
  relay: [h1, front.relay, h1]
  twice: [h1, front.relay, h1, front.relay, h1]
  boasted: [h1, front.boaster, h2c]
  stubborn: [h1, front.stubborn, h1]
{routes}
scenarios: [{scenario}]
loads:
  saturate: {{closed: {{users: 4}}, for: 300ms}}
warmup: 50ms
timeout: 2s
trials: {trials}
{more}
"""


def _origins(oracle: Path) -> str:
    null = f"start: {{command: ['{oracle}', 'null', '--port', '{{port}}']}}"
    return f"""\
about: servers to be put behind proxies
runtime: native
http: [1.1, 2]
{BUILD}
servers:
  one: {{about: answers, ready: {{path: /path0}}, {null}}}
  tires:
    about: ends after a while
    start: {{command: ['{sys.executable}', '{SERVER}', '{{port}}', tires]}}
  both:
    about: answers in both versions of HTTP
    start: {{command: ['{sys.executable}', '{SERVER.with_name("both_versions.py")}', '{{port}}']}}
"""


class Lab:
    """A project with servers `origin.*`, proxies `front.*` and `real.nginx`."""

    def __init__(self, redline: Redline, oracle: Path) -> None:
        self.redline = redline
        self.catalogue = redline.folder / "catalogue"
        make = CHECKOUT / "catalogue" / "tls" / "make"
        files = {
            "scenarios.yaml": SCENARIOS,
            "origin/server.yaml": _origins(oracle),
            "front/server.yaml": FRONT,
            "real/server.yaml": NGINX.replace("MAKE", str(make)),
            "real/start": START_NGINX,
        }
        for name, text in files.items():
            file = self.catalogue / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def suite(
        self, servers: str, *, scenario: str = "SimpleGet", trials: int = 2, routes: str = "", more: str = ""
    ) -> Path:
        file = self.redline.folder / "suite.yaml"
        text = SUITE.format(servers=servers, scenario=scenario, trials=trials, routes=routes, more=more)
        file.write_text(text)
        return file

    def run(self, suite: Path) -> tuple[Done, Report]:
        done = self.redline("run", suite, "-o", self.out, "--json")
        assert "Traceback" not in done.err
        return done, Report.model_validate_json(done.out)

    @property
    def out(self) -> Path:
        return self.redline.folder / "out"

    @property
    def stored(self) -> Run:
        return RunStore(self.out).run()


@pytest.fixture
def lab(redline: Redline, oracle: Path, tmp_path: Path) -> Lab:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    redline.environment["TMPDIR"] = str(temporary)
    return Lab(redline, oracle)


def hops_of(recording: Recording) -> list[tuple[str, str, str | None]]:
    assert recording.server is not None
    return [(hop.name, hop.upstream, hop.upstream_seen) for hop in recording.server.hops]


def test_a_server_directly_and_behind_proxies(lab: Lab) -> None:
    _, report = lab.run(lab.suite("[{use: origin.one, route: [direct, relay, twice]}]", more="baseline: origin.one"))
    assert report.run.complete
    assert [cell.server for cell in report.cells] == ["origin.one", "origin.one+via=relay", "origin.one+via=twice"]
    assert Counter(answered(lab.out)) == Counter({cell.server: 2 for cell in report.cells}), report.cells
    assert [cell.route for cell in report.cells] == [
        "",
        "h1 → front.relay → h1",
        "h1 → front.relay → h1 → front.relay → h1",
    ]
    parts: tuple[list[str], ...] = ([], ["server", "front.relay"], ["server", "front.relay", "front.relay"])
    for cell, names in zip(report.cells, parts, strict=True):
        assert [part.name for part in cell.parts] in ([names] if cell.valid else [names, []])
        for part in cell.parts if cell.valid else ():
            assert part.estimates[Metric.CPU_PER_REQUEST].value > 0
            assert part.estimates[Metric.MEMORY].value > 0
    seen = {each.cell_id.split(".SimpleGet")[0]: hops_of(each) for each in lab.stored.recordings}
    assert seen == {
        "origin.one": [],
        "origin.one+via=relay": [("front.relay", "h1", "h1")],
        "origin.one+via=twice": [("front.relay", "h1", "h1")] * 2,
    }
    for recording in lab.stored.recordings:
        assert recording.traffic is not None
        assert recording.traffic.clocks is not None
    assert {(effect.axis, effect.value, effect.reference) for effect in report.effects} == {
        ("route", "relay", "direct"),
        ("route", "twice", "direct"),
    }
    logs = {file.name for file in (lab.redline.folder / "out").rglob("*.log")}
    assert {"server.log", "server-hop-1.log", "server-hop-2.log", "engine.log"} <= logs
    assert left_of(lab.redline) == []


@pytest.mark.long
def test_what_a_proxy_costs_is_a_duet(lab: Lab) -> None:
    more = "baseline: origin.one\ndesign: duet"
    _, report = lab.run(lab.suite("[{use: origin.one, route: [direct, relay]}]", more=more))
    (duet, *_) = lab.stored.duets
    assert duet.failure is None
    assert [[hop.name for hop in facts.hops] if facts else None for facts in duet.servers] == [[], ["front.relay"], []]
    compared = {one.metric: one for one in report.comparisons if one.duet is not None}
    cpu = compared[Metric.CPU_PER_REQUEST]
    assert cpu.ratio is not None
    # A relay in Python costs more than the server itself: its CPU time is part of what is compared.
    assert cpu.ratio.value > 2


@pytest.mark.long
def test_the_limit_behind_a_proxy(lab: Lab) -> None:
    suite = lab.suite("[{use: origin.one, route: relay}]")
    text = suite.read_text().replace("closed: {users: 4}, for: 300ms", "open: {rate: 200, connections: 16}, for: 1s")
    suite.write_text(f"{text}objective: p99 < 500ms\n")
    done = lab.redline("limit", suite, "--probes", "2", "--trials", "2", "--no-beyond", "--json")
    assert "Traceback" not in done.err
    assert done.out, done.err
    (cell,) = done.json["cells"]
    assert cell["server"] == "origin.one+via=relay"
    assert left_of(lab.redline) == []


def test_a_proxy_that_speaks_another_protocol_behind_it(lab: Lab) -> None:
    _, report = lab.run(lab.suite("[{use: origin.both, route: [relay, boasted]}]", scenario="Ok"))
    kinds = {cell.server: {finding.kind for finding in cell.findings} for cell in report.cells}
    assert "upstream-protocol" in kinds["origin.both+via=boasted"]
    assert "upstream-protocol" not in kinds["origin.both+via=relay"]
    assert Counter(answered(lab.out)) == Counter({cell.server: 2 for cell in report.cells})


def test_a_server_that_dies_behind_a_proxy_is_named(lab: Lab) -> None:
    suite = lab.suite("[{use: origin.tires, route: relay}]", scenario="Ok", trials=1)
    suite.write_text(suite.read_text().replace("for: 300ms", "for: 4s"))  # it ends after 200 requests
    _, report = lab.run(suite)
    (trial,) = report.cells[0].trials
    assert "origin.tires+via=relay exited" in trial.failure
    assert "out of patience" in trial.failure
    assert left_of(lab.redline) == []


def test_a_proxy_that_does_not_pass_requests_on(lab: Lab) -> None:
    _, report = lab.run(lab.suite("[{use: origin.one, route: stubborn}]", trials=1))
    (trial,) = report.cells[0].trials
    assert trial.failure.startswith("launch: front.stubborn answers GET /path0 on port")
    assert "with status 502 in place of 200" in trial.failure
    assert left_of(lab.redline) == []


EXPIRED, EXPIRES = {"days": -1}, r"certificate has expired|certificate expired"
ELSEWHERE, MISMATCHES = {"name": "elsewhere.example"}, r"Hostname mismatch|not for localhost"
ROUTES = """\
  nginx: [h1, real.nginx, h1]
  https: [h1+tls, real.nginx, h1]
  h2: [h2+tls, real.nginx, h1]
  h2c: [h2c, real.nginx, h1]
  inner: [h1, real.nginx, h1+tls, real.nginx, h1]
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_every_leg_of_nginx(lab: Lab) -> None:
    suite = lab.suite("[{use: origin.one, route: [nginx, https, h2, h2c, inner]}]", trials=1, routes=ROUTES)
    _, report = lab.run(suite)
    failures = {cell.server: [trial.failure for trial in cell.trials] for cell in report.cells}
    assert {*answered(lab.out)} == {cell.server for cell in report.cells}, failures
    agreed = {cell.server.split("=")[1]: [tls.alpn for tls in cell.tls] for cell in report.cells}
    assert agreed == {"nginx": [], "https": ["http/1.1"], "h2": ["h2"], "h2c": [], "inner": []}
    seen = {each.cell_id.split("=")[1].split(".")[0]: hops_of(each) for each in lab.stored.recordings}
    one = [("real.nginx", "h1", "h1")]
    inner = [("real.nginx", "h1+tls", "h1+tls"), ("real.nginx", "h1", "h1")]
    assert seen == {"nginx": one, "https": one, "h2": one, "h2c": one, "inner": inner}
    kinds = {finding.kind for cell in report.cells for finding in cell.findings}
    assert not kinds & {"upstream-protocol", "upstream-certificate"}
    assert left_of(lab.redline) == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.parametrize(
    ("route", "made", "says"),
    [
        ("https", EXPIRED, EXPIRES),
        ("h2", ELSEWHERE, MISMATCHES),
        pytest.param("inner", EXPIRED, EXPIRES, marks=pytest.mark.long),
        pytest.param("https", ELSEWHERE, MISMATCHES, marks=pytest.mark.long),
        pytest.param("h2", EXPIRED, EXPIRES, marks=pytest.mark.long),
        pytest.param("inner", ELSEWHERE, MISMATCHES, marks=pytest.mark.long),
    ],
)
def test_a_certificate_that_is_not_valid_is_named_on_either_leg(
    lab: Lab, route: str, made: dict[str, Any], says: str
) -> None:
    suite = lab.suite(f"[{{use: origin.one, route: {route}}}]", trials=1, routes=ROUTES)
    family, out = lab.catalogue / "real" / "server.yaml", lab.catalogue / "real" / "out"
    family.write_text(re.sub(r"run: .*, out\]", "run: ['true']", family.read_text()).replace("10s", "3s"))
    out.mkdir()
    write_certificate(out, **made)
    _, report = lab.run(suite)
    (trial,) = report.cells[0].trials
    assert re.search(says, trial.failure)
    assert left_of(lab.redline) == []


@pytest.mark.long
def test_a_lab_that_is_killed_leaves_no_proxy_and_its_run_is_resumed(lab: Lab) -> None:
    suite = lab.suite("[{use: origin.one, route: [relay, twice]}]", trials=4)
    process = lab.redline.start("run", suite, "-o", "out")
    assert eventually(lambda: exists_below(lab.redline.folder / "out", "recordings/0001*.json"), 120)
    assert eventually(lambda: any("proxy.py" in line for line in _commands(lab)), 120)
    process.kill()
    process.communicate(timeout=60)
    assert eventually(lambda: _commands(lab) == [])
    done = lab.redline("run", "--resume", "out", "--json")
    assert Report.model_validate(done.json).run.complete
    assert _commands(lab) == []


def _commands(lab: Lab) -> list[str]:
    """The command lines of all processes that this project has started."""
    found = []
    for name in left_of(lab.redline):
        with suppress(OSError):
            found += [Path(name, "cmdline").read_bytes().replace(b"\0", b" ").decode()] if "/proc/" in name else []
    return found


def null(oracle: Path) -> str:
    return f"{oracle} null --port {{port}}"


@pytest.mark.long
@pytest.mark.parametrize("proxy", ["nginx", "haproxy"])
def test_the_price_of_a_proxy_before_a_server_of_the_users_is_one_flag(
    proxy: str, redline: Redline, oracle: Path
) -> None:
    if shutil.which(proxy) is None:
        pytest.skip(f"{proxy} is not installed")
    done = compared(redline, "--route", proxy, null(oracle), "--load", "closed:4", keep="out")
    assert done.code == 0, done.err
    report = Report.model_validate_json(done.out)
    assert [cell.server for cell in report.cells] == ["redline-oracle", f"redline-oracle+via={proxy}"]
    assert report.cells[1].route == f"h1 → proxy.{proxy} → h1"
    for made in RunStore(redline.folder / "out").run().duets:
        _, through, _ = made.servers
        assert through is not None
        assert [(hop.name, hop.upstream_seen) for hop in through.hops] == [(f"proxy.{proxy}", "h1")]


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.long
@pytest.mark.parametrize("command", ["run", "ab", "limit"])
def test_a_server_in_redline_yaml_has_routes(redline: Redline, oracle: Path, command: str) -> None:
    (redline.folder / "redline.yaml").write_text(
        f"servers:\n  - {{name: shop, start: '{null(oracle)}', route: [direct, nginx]}}\n"
        "loads: {few: {closed: {users: 4}}}\nbudget: 3s\nobjective: p99 < 1s\n"
    )
    short = ("-d", "1s", "--warmup", "100ms", "--trials", "2", "--probes", "1", "--no-beyond")
    done = redline(command, *(short if command == "limit" else ()), "--json")
    assert done.code in {0, 1}, done.err
    assert [cell["server"] for cell in done.json["cells"]] == ["shop", "shop+via=nginx"]


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_behind_a_proxy_the_cpu_time_of_a_running_server_is_counted_too(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = compared(redline, "--route", "nginx", url, "--load", "closed:4", keep="out")
    assert done.code == 0, done.err
    (made,) = RunStore(redline.folder / "out").run().duets
    direct, through, control = made.owners
    assert (direct.unknown, through.unknown) == ("", "")
    assert direct.processes == control.processes
    assert through.processes[: len(direct.processes)] == direct.processes
    proxies = through.processes[len(direct.processes) :]
    assert proxies
    assert all("nginx" in name for name in proxies), proxies
    report = Report.model_validate_json(done.out)
    (of_cpu,) = (each for each in report.comparisons if each.metric is Metric.CPU_PER_REQUEST)
    assert of_cpu.ratio is not None


def test_a_proxy_that_is_not_there_is_refused_before_anything_starts(redline: Redline, oracle: Path) -> None:
    redline("ab", "--route", "ngnix", null(oracle)).refused(2, "--route ngnix: there is no route and no proxy", "nginx")
    redline("ab", "--route", "nginx", "https://127.0.0.1:1/").refused(2, "--route nginx: a server behind https:// has")
