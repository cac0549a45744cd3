"""Every command in the documentation is run, with shorter durations and its placeholders filled in."""

import re
import shlex
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from redline.driving.engine_process import find_engine
from tests.e2e.conftest import CHECKOUT, Done, Redline
from tests.e2e.lab import Lab
from tests.fakes import targets
from tests.fakes.certificates import Certificate
from tests.golden import FOLDER

pytestmark = pytest.mark.e2e

PAGES = sorted(
    str(page.relative_to(CHECKOUT))
    for page in (CHECKOUT / "README.md", *CHECKOUT.glob("docs/**/*.md"))
    if page.is_file()
)
SHORT_RUN = ["-d", "200ms", "--warmup", "100ms", "--trials", "1"]
FEW_CELLS = {"suites/tapir.yaml": ["-w", "interceptor=off"]}
"""JVMs take seconds to start: half of that suite's servers is enough to show that its commands work."""
SHORT_LOAD = ["-d", "200ms", "--warmup", "50ms"]
SHORT_LIMIT = ["-d", "1s", "--warmup", "50ms", "--probes", "2", "--start", "100"]
SEARCHED = """\
servers: [good.one]
scenarios: [SimpleGet]
loads: {probe: {open: {rate: 150, connections: 4}, for: 1s}}
objective: p99 < 1s
warmup: 50ms
"""
SHORT_SELFTEST = ["--seconds", "0.5"]
ONE_CASE = ["--case", "fixed"]
SHORT_AB = ["--for", "4s", "--load", "closed:2"]
OWN_SUITES = ("mine.yaml", "axum.yaml")
"""The files of the guide to the first suite: the user's own servers with a budget, and servers of the catalogue."""


def commands(text: str) -> list[list[str]]:
    """All `redline …` lines of the page's shell blocks, as arguments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    parts = [shlex.split(line, comments=True) for line in lines]
    return [part[1:] for part in parts if part and part[0] in {"redline", ".venv/bin/redline"}]


def quick_looks() -> list[list[str]]:
    """All `redline-engine load …` lines of the pages, as arguments."""
    text = "".join((CHECKOUT / page).read_text() for page in PAGES)
    return [shlex.split(line)[1:] for line in re.findall(r"^redline-engine load .*$", text, flags=re.MULTILINE)]


def documented(*pages: str) -> set[str]:
    """The commands of these pages."""
    return {shlex.join(args) for page in pages for args in commands((CHECKOUT / page).read_text())}


IN_CONTAINERS = sorted(command for command in documented(*PAGES) if "compose.yaml" in command.split())
"""These start containers: tests/e2e/test_own_containers.py runs them."""
OWN_PROJECT = sorted(documented("docs/guide/my-server.md") - {*IN_CONTAINERS})
"""These need a redline.yaml, or write one: tests/e2e/test_my_server.py runs them."""
EXTENDED = sorted(documented(*(page for page in PAGES if "/own-" in page)))
"""These need a package: tests/e2e/test_own_*.py run them."""
_TRAFFIC_FILES = {"access.log", "checkout.yaml", "shop.har", "shop.yaml", "openapi.yaml", "recorded.txt"}
TRAFFIC = sorted(
    {command for command in documented(*PAGES) if command.startswith("import ") or _TRAFFIC_FILES & {*command.split()}}
    - {*OWN_PROJECT, *EXTENDED}
)
"""These read files of requests: tests/e2e/test_my_traffic.py runs them."""
OWN_FORMATS = sorted(documented("docs/guide/own-formats.md"))
"""These need a package with a format: tests/e2e/test_own_formats.py runs them."""
WAYS = sorted(
    command
    for command in documented(*PAGES)
    if {"--unix-socket", "--connect-to", "--resolve", "--source", "--cert", "--sni", "--proxy"} & {*command.split()}
    or "http+unix:" in command
)
"""These reach servers by sockets, other places and certificates: tests/e2e/test_way_in.py runs them."""
LISTENED = sorted(command for command in documented(*PAGES) if "ws://" in command and "--events" in command.split())
"""These listen on WebSockets: tests/e2e/test_websockets.py runs them."""
STREAMS = sorted({command for command in documented(*PAGES) if "--events" in command.split()} - {*LISTENED})
"""These load streams of events: tests/e2e/test_event_streams.py runs them."""
CHUNKED = sorted(command for command in documented(*PAGES) if "Transfer-Encoding: chunked" in command)
"""These send a file in chunks: tests/e2e/test_bodies.py runs them."""
SIGN_INS = sorted(command for command in documented(*PAGES) if command.startswith("load ") and "${" in command)
"""These need variables with secrets: tests/e2e/test_signing_in.py runs them."""
VIEWED = sorted(command for command in documented(*PAGES) if command.split()[0] == "view")
"""These serve until they are interrupted: tests/e2e/test_view.py runs them."""
BISECTED = sorted(command for command in documented(*PAGES) if command.split()[0] == "bisect")
"""These search the commits of a repository: tests/e2e/test_bisect.py runs them."""
DOCUMENTED = sorted(
    documented(*PAGES)
    - {*IN_CONTAINERS, *OWN_PROJECT, *TRAFFIC, *EXTENDED, *WAYS, *LISTENED, *STREAMS, *CHUNKED}
    - {*SIGN_INS, *VIEWED, *BISECTED}
)


def test_the_documentation_shows_every_command() -> None:
    shown = {command.split()[0] for command in (*DOCUMENTED, *OWN_PROJECT, *TRAFFIC, *VIEWED, *BISECTED)}
    assert shown == {
        "run",
        "profile",
        "init",
        "import",
        "bisect",
        "check",
        "build",
        "load",
        "limit",
        "ab",
        "cache",
        "report",
        "compare",
        "history",
        "view",
        "judge",
        "list",
        "doctor",
        "selftest",
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, oracle: Path) -> Path:
    """A project with three small runs, a search, and a comparison that can be resumed, and other tools' results."""
    folder = tmp_path_factory.mktemp("documented")
    lab, redline = Lab(folder, oracle), Redline(folder)
    suite = lab.suite("good.one, good.two", trials=2, more="baseline: good.one")
    for name in ("DIR", "A", "B"):
        done = redline("run", suite, "-o", f"runs/{name}")
        assert "report:" in done.err, done.err
        shutil.copy(folder / "runs" / name / "results.json", folder / f"{name}.json")
    searched = folder / "searched.yaml"
    searched.write_text(SEARCHED)
    for name in ("old", "new"):
        (folder / name).mkdir()
        (folder / name / "limit.yaml").write_text(SEARCHED)
    done = redline("limit", searched, "-o", "runs/LIMIT", "--probes", "1", "--no-beyond")
    assert "report:" in done.err, done.err
    server = f"{oracle} null --port {{port}}"
    for flags in (("-o", "runs/AB"), ("--write-suite", "compare.yaml")):
        done = redline("ab", server, server, *SHORT_AB, *flags)
        assert done.code == 0, done.err
    requests = yaml_of("ab.md", "- {name: items")
    (folder / "requests.yaml").write_text(requests.replace("status: 201", "status: 200"))  # as the oracle answers
    (folder / "README.md").write_text("a body")
    (folder / "results").mkdir()
    for name in ("wrk.txt", "oha.json"):
        shutil.copy(FOLDER / "peers" / name, folder / "results")
    return folder


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("certificate"))


def yaml_of(page: str, begins: str) -> str:
    """The YAML block of a guide that has a line beginning with this."""
    text = (CHECKOUT / "docs" / "guide" / page).read_text()
    found = [
        str(block)
        for block in re.findall(r"^```yaml\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        if f"\n{begins}" in f"\n{block}"
    ]
    (only,) = found
    return only


@pytest.fixture(scope="module")
def selftests() -> dict[tuple[str, ...], Done]:
    """The output of selftests: those that differ only in their duration are the same when shortened."""
    return {}


def short_ab(args: list[str], url: str, oracle: Path, kept: Path) -> list[str]:
    """The same command with short durations, and with a server for every placeholder of the page.

    What is resumed lacks a start, and output folders are empty.
    """
    if "--route" in args and shutil.which(args[args.index("--route") + 1]) is None:
        pytest.skip("the proxy is not installed")
    if "--resume" in args:
        max((kept / "duets").iterdir()).unlink()
        return ["ab", "--resume", str(kept)]
    args = [f"{arg}-again" if args[i - 1] in {"-o", "--write-suite"} else arg for i, arg in enumerate(args)]
    args = [url if arg.startswith("http://") else arg for arg in with_servers(args, oracle)]
    return replaced(args, SHORT_AB)


def with_servers(args: list[str], oracle: Path) -> list[str]:
    """The arguments with the oracle in place of the programs that the pages name."""
    for name in ("./old", "./new", "./shop"):
        args = [arg.replace(name, f"{oracle} null") for arg in args]
    return args


def replaced(args: list[str], flags: list[str]) -> list[str]:
    """The arguments with these flags and their values in place of the same flags."""
    names = flags[::2]
    return [arg for i, arg in enumerate(args) if not {arg, args[i - 1]} & set(names)] + flags


def write_first_suites(folder: Path, oracle: Path) -> None:
    """The suites of the guide, with less time for the user's own servers."""
    text = yaml_of("first-suite.md", "budget: 60s").replace("budget: 60s", "budget: 4s")
    (folder / "mine.yaml").write_text("\n".join(with_servers(text.split("\n"), oracle)))
    (folder / "axum.yaml").write_text(yaml_of("first-suite.md", "servers: [rust.hyper"))


def make_revisions(folder: Path, oracle: Path) -> None:
    """A repository with the revisions that the pages name."""
    if (folder / ".git").exists():
        return
    (folder / "redline.yaml").write_text(f"start: {oracle} null --port {{port}}\n")
    author = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        *(("commit", "--quiet", "--allow-empty", "--message", name) for name in ("first", "v1.2", "main")),
        ("tag", "v1.2", "HEAD~1"),
        ("checkout", "--quiet", "-b", "mine"),
        ("commit", "--quiet", "--allow-empty", "--message", "mine"),
    ):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)


def short_selftest(args: list[str]) -> list[str]:
    """The same case for a short while; a single case if all were requested."""
    return [*replaced(args, SHORT_SELFTEST), *([] if "--case" in args else ONE_CASE)]


def uses_own_catalogue(args: list[str]) -> bool:
    """Whether servers and suites of this checkout are meant."""
    suites = ("suites/", "quickstart", *OWN_SUITES)
    return args[0] in {"build", "list"} or any(arg.startswith(suites) for arg in args)


def context_of(args: list[str], certificate: Certificate) -> ssl.SSLContext | None:
    """The server's side of TLS, if the URL of a command asks for it."""
    over_tls = any(arg.startswith("https://") for arg in args)
    return certificate.context("h2" if "--http2" in args else "http/1.1") if over_tls else None


def check(args: list[str], done: Done) -> None:
    """Assert that a command worked, as far as a busy machine lets it."""
    if "--on" in args:  # tests/e2e/test_ray.py runs it, on a cluster; here is no cluster, or no Ray
        assert done.code == 2, (args, done.err)
        assert "no Ray cluster could be reached at auto" in done.err or "--extra ray" in done.err
        return
    if {"collapsed", "speedscope"} & set(args) and done.code:  # where nothing can be profiled
        done.refused(1, "has no profile")
        return
    # On a busy machine so short a measurement may be invalid, which the exit code must show.
    depends = "--fail-on" in args or args[0] in {"run", "profile", "load", "limit", "ab", "selftest"}
    assert done.code in ({0, 1, 3} if depends else {0}), (args, done.err)
    assert "Traceback" not in done.err
    assert done.out or {"--write-suite", "hgrm", "svg", "png"} & set(args) or (args[0] == "report" and "-o" in args)


@pytest.mark.parametrize("args", quick_looks(), ids=shlex.join)
def test_a_documented_quick_look_works(args: list[str]) -> None:
    with targets.target(targets.healthy) as url:
        args = replaced(
            [url if arg.startswith("http://") else arg for arg in args], ["-d", "300ms", "--warmup", "50ms"]
        )
        done = subprocess.run([find_engine(), *args], capture_output=True, text=True, timeout=120, check=False)
    # A busy machine may make requests fail or the engine late, which the output says.
    assert done.returncode == int("\ninvalid: " in done.stdout), (done.stdout, done.stderr)
    assert done.stdout.startswith("throughput  ")


@pytest.mark.long
@pytest.mark.parametrize("command", DOCUMENTED)
def test_a_documented_command_works(
    command: str,
    runs: Path,
    tmp_path: Path,
    oracle: Path,
    certificate: Certificate,
    selftests: dict[tuple[str, ...], Done],
) -> None:
    args = shlex.split(command)
    redline = Redline(runs)
    if uses_own_catalogue(args):
        args = [str(CHECKOUT / arg) if arg.startswith("suites/") else arg for arg in args]
        redline = Redline(tmp_path)
        write_first_suites(tmp_path, oracle)
    if args[0] == "cache":
        redline.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    if args[0] == "selftest":
        args = short_selftest(args)
    if args[0] in {"run", "profile"} and "--resume" not in args and not {"mine.yaml", "compare.yaml"} & set(args):
        few = [flag for suite, flags in FEW_CELLS.items() if suite in command for flag in flags]
        args = replaced(args, SHORT_RUN) + few
    if "--more" in args:
        args = replaced(args, ["--more", "1s"])
    args = ["--wait-quiet=1s" if arg.startswith("--wait-quiet") else arg for arg in args]
    http2 = "--http2" in args
    context = context_of(args, certificate)
    (redline.folder / "ca.pem").write_text(certificate.pem)
    with targets.target(targets.speaks_http2 if http2 else targets.healthy, context) as url:
        if args[0] in {"load", "limit"}:
            short = SHORT_LOAD if args[0] == "load" else [] if "--resume" in args else SHORT_LIMIT
            # A condition that has to hold for longer than the load lasts is refused.
            short = SHORT_LOAD[2:] if args[0] == "load" and "--abort-when" in args else short
            args = replaced([url if arg.startswith(("http://", "https://")) else arg for arg in args], short)
        if args[0] == "limit" and ("--git" in args or "{port}" in command):
            args = [*with_servers(args, oracle), "--trials", "2", "--no-beyond"]
            make_revisions(redline.folder, oracle)
        if args[0] == "ab":
            args = short_ab(args, url, oracle, runs / "runs" / "AB")
            make_revisions(redline.folder, oracle)
        done = selftests.get(tuple(sorted(args))) or redline(*args)
    if args[0] == "selftest":
        selftests[tuple(sorted(args))] = done
    check(args, done)
