"""`--write-suite` of the commands that load: the file has what the command would measure, and nothing is measured."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redline.asking.asks import split
from redline.asking.catalogues import read_catalogue
from redline.asking.load import load_suite as suite_of
from redline.asking.origins import FromRepository, read_project_file
from redline.asking.requests import referenced
from redline.asking.searching import read_servers_search, read_suites_search
from redline.cli.command_line import app
from redline.errors import UsageError
from redline.model.sign_in import BasicSignIn
from redline.suite import Catalogue
from redline.suite.loading import load_suite
from tests.fakes import asks
from tests.fakes.certificates import Certificate

URL = "http://127.0.0.1:1/items"
COMMAND = "./shop --port {port}"
FILE = Path("written.yaml")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--write-suite", str(FILE)])


@pytest.mark.parametrize("server", [URL, COMMAND])
def test_a_load_is_a_suite_of_one_trial(server: str) -> None:
    done = written("load", server, "-c", "4", "-d", "2s", "-H", "Accept: text/plain", "--objective", "p99 < 1s")
    assert done.exit_code == 0, done.exception
    assert FILE.read_text().startswith("# Measure it with: redline run written.yaml\n")
    read = load_suite(FILE, Catalogue())
    asked = asks.load(url=server, connections=4, duration="2s", headers=["Accept: text/plain"], objective=["p99 < 1s"])
    meant, _ = suite_of(asked)
    assert (read.loads, read.scenarios, read.objectives) == (meant.loads, meant.scenarios, meant.objectives)
    assert [variant.slug for variant in read.variants] == [variant.slug for variant in meant.variants]
    assert (read.trials, read.warmup_ns, read.seed) == (1, meant.warmup_ns, meant.seed)


@pytest.mark.parametrize(
    "objectives", [["p99 < 200ms"], ["good: p99 < 200ms", "fair: p99 < 500ms"], ["p99 < 200ms", "p50 < 10ms"]]
)
def test_a_search_is_a_suite_with_its_objective(objectives: list[str]) -> None:
    flags = [word for text in objectives for word in ("--objective", text)]
    done = written("limit", COMMAND, "--start", "300", "--probes", "5", "--no-beyond", *flags)
    assert done.exit_code == 0, done.exception
    assert FILE.read_text().startswith("# Measure it with: redline limit written.yaml --probes 5 --no-beyond\n")
    here = FromRepository(Path.cwd())
    asked = {"objective": objectives, "probes": 5, "no_beyond": True}
    meant = read_servers_search(asks.search(targets=[COMMAND], start="300", **asked), here).request
    read = read_suites_search(asks.search(targets=[str(FILE)], probes=5, no_beyond=True), here).request
    assert read.terms.sets == meant.terms.sets
    assert read.suite.loads == meant.suite.loads
    assert read.suite.scenarios == meant.suite.scenarios


@pytest.mark.parametrize(
    ("servers", "command", "differs"),
    [
        ([COMMAND], "", ["the first rate is that of the load"]),
        ([COMMAND, "--start", "300", "--no-beyond"], " --no-beyond", []),
        ([URL, "--start", "300"], " --no-beyond", ["the engine has a worker on each of its cores, not 1"]),
        (
            [COMMAND, "./other --port {port}", "--start", "90"],
            " --no-beyond",
            ["servers are searched one after the other"],
        ),
    ],
)
def test_a_suite_says_what_its_search_does_otherwise(servers: list[str], command: str, differs: list[str]) -> None:
    done = written("limit", *servers, "--objective", "p99 < 1s")
    assert done.exit_code == 0, done.exception
    first, *lines = FILE.read_text().splitlines()
    assert first == f"# Measure it with: redline limit {FILE}{command}"
    said = [line.removeprefix("# What differs: ") for line in lines if line.startswith("#")]
    assert len(said) == len(differs)
    assert all(line.startswith(text) for line, text in zip(said, differs, strict=True))
    assert all(f"measured by {FILE}, {line}" in done.stderr for line in said)


def test_the_bound_of_a_whole_search_is_in_no_suite() -> None:
    done = written("limit", COMMAND, "--for", "3m", "--objective", "p99 < 1s")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("--for 3m bounds the whole search, which a suite does not")
    assert done.exception.hint == "give -d, the length of a probe"
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["load", URL, "--json"], "--json"),
        (["load", URL, "-o", "kept"], "-o"),
        (["load", URL, "-t", "2"], "-t"),
        (["load", URL, "--stream"], "--stream"),
        (["limit", URL, "--objective", "p99 < 1s", "--wait-quiet"], "--wait-quiet"),
        (["limit", URL, "--objective", "p99 < 1s", "--alone"], "--alone"),
        (["ab", URL, URL, "--openmetrics", "9"], "--openmetrics"),
        (["load", URL, "--otlp-traces", "http://127.0.0.1:4318"], "--otlp-traces"),
    ],
)
def test_it_takes_no_flag_about_measuring(words: list[str], flag: str) -> None:
    done = written(*words)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"--write-suite measures nothing, and takes no {flag}")
    assert not FILE.exists()


@pytest.mark.parametrize("command", ["load", "limit"])
def test_a_file_that_exists_stays(command: str) -> None:
    FILE.write_text("mine")
    done = written(command, URL, *(["--objective", "p99 < 1s"] if command == "limit" else []))
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("written.yaml exists already")
    assert FILE.read_text() == "mine"


def test_a_suite_is_not_written_again() -> None:
    done = written("limit", "some.yaml", "--objective", "p99 < 1s")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("some.yaml is written already")


def test_a_password_that_names_a_variable_is_written_as_that() -> None:
    done = written("load", URL, "--user", "ann:${NOT_SET_HERE}", "-A", "me")
    assert done.exit_code == 0, done.exception
    request = load_suite(FILE, Catalogue()).scenarios[0].request
    assert request.auth == BasicSignIn(user="ann", password="${NOT_SET_HERE}")
    assert request.headers == {"User-Agent": "me"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["load", URL, "-R", "200", "-d", "1s"], "rate: 200,"),
        (["load", URL, "-R", "300/min", "-d", "1s"], "rate: 300/min,"),
        (["ab", URL, COMMAND, "--load", "open:200"], "rate: 200}"),
        (["ab", URL, COMMAND, "--load", "open:200/s"], "rate: 200/s}"),
        (["limit", COMMAND, "--start", "300", "--objective", "p99 < 1s"], "rate: 300,"),
    ],
)
def test_a_whole_rate_is_written_without_quotes(words: list[str], line: str) -> None:
    done = written(*words)
    assert done.exit_code == 0, done.exception
    assert line in FILE.read_text()


@pytest.mark.parametrize(
    "words", [["load", URL, "--rate="], ["limit", COMMAND, "--start="], ["ab", URL, URL, "--load=closed:"]]
)
def test_a_rate_of_too_many_digits_is_refused_as_any_other(words: list[str]) -> None:
    *before, last = words
    done = written(*before, *(["--objective", "p99 < 1s"] if "limit" in before else []), last + "1" * 5000)
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize("command", [("ab",), ("limit", "--objective", "p99 < 20ms")])
def test_servers_of_the_catalogue_are_named_in_the_suite_and_read_again(command: tuple[str, ...]) -> None:
    name, *flags = command
    done = written(name, "vertx.vanilla@4", "vertx.vanilla@5", *flags)
    assert done.exit_code == 0, done.exception
    read = load_suite(FILE, read_catalogue(FILE))
    assert [variant.entry.name for variant in read.variants] == ["vertx.vanilla@4", "vertx.vanilla@5"]
    assert [scenario.request.path for scenario in read.scenarios] == ["/path0"]
    builds = [variant.catalogued.catalogue_build.target for variant in read.variants]
    assert builds == ["vertx-vanilla", "vertx-vanilla@5.1.6"]


def test_servers_of_the_catalogue_are_named_with_their_options() -> None:
    done = written("ab", "vertx.vanilla@5", "vertx.vanilla@5+interceptor=server-log")
    assert done.exit_code == 0, done.exception
    read = load_suite(FILE, read_catalogue(FILE))
    off, log = (variant.slug for variant in read.variants)
    assert (off, log) == ("vertx.vanilla@5", "vertx.vanilla@5+interceptor=server-log")
    assert (read.baseline_of(off), read.baseline_of(log)) == (None, off)
    FILE.unlink()
    threads = ("spring-boot.tomcat+threads=virtual+jdk=25", "spring-boot.tomcat+threads=platform+jdk=25")
    done = written("ab", *threads, "--http2")
    assert done.exit_code == 0, done.exception
    read = load_suite(FILE, read_catalogue(FILE))
    virtual, platform = (variant.slug for variant in read.variants)
    assert virtual == "spring-boot.tomcat+jdk=25+threads=virtual+http2"
    assert platform == "spring-boot.tomcat+jdk=25+http2", "that is the default"
    assert (read.baseline_of(virtual), read.baseline_of(platform)) == (None, virtual)
    FILE.unlink()
    done = written("limit", "--objective", "p99 < 20ms", "rust.axum+routes=1", COMMAND, "rust.axum")
    assert done.exit_code == 0, done.exception
    read = load_suite(FILE, read_catalogue(FILE))
    first, *others = (variant.slug for variant in read.variants)
    assert first == "rust.axum+routes=1"
    assert {read.baseline_of(slug) for slug in others} == {first}


@pytest.mark.parametrize(
    ("target", "says", "hint"),
    [
        ("vertx.vanilla+log=on", "vertx.vanilla has no option `log`", "it has "),
        ("vertx.vanilla+interceptor=on", "vertx.vanilla does not take interceptor on, only off, server-log", ""),
    ],
)
def test_what_a_server_of_the_catalogue_does_not_take_is_named(target: str, says: str, hint: str) -> None:
    done = written("ab", "vertx.vanilla", target)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(says)
    assert (done.exception.hint or "").startswith(hint)


@pytest.mark.parametrize("command", [("ab",), ("limit", "--objective", "p99 < 20ms")])
def test_scenarios_of_the_catalogue_are_selected_for_servers_of_it(command: tuple[str, ...]) -> None:
    name, *flags = command
    done = written(name, "vertx.vanilla", "vertx.tapir-future", *flags, "-m", "PostB*,SimpleGet")
    assert done.exit_code == 0, done.exception
    read = load_suite(FILE, read_catalogue(FILE))
    assert [scenario.name for scenario in read.scenarios] == ["SimpleGet", "PostBytes"]
    if name == "ab":
        assert read.auto is not None
        assert read.auto.budget_ns == 120 * 10**9, "a minute for each"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ab", "vertx.vanilla", "vertx.vanilla@5", "-m", "Nix"), "-m Nix: there is no such scenario"),
        (("ab", "vertx.vanilla", COMMAND, "-m", "PostBytes"), "-m PostBytes: there is a single request"),
        (
            ("ab", "vertx.vanilla", "vertx.vanilla@5", "-m", "PostBytes", "--body", "x"),
            "-m PostBytes: there is a single",
        ),
        (("load", "vertx.vanilla", "-m", "Post*"), "-m Post*: a load takes one scenario, and these are 4"),
    ],
)
def test_scenarios_that_cannot_be_selected_are_refused(words: tuple[str, ...], says: str) -> None:
    done = written(*words)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(says)


PROJECT = """\
servers:
  - {name: old, url: "https://127.0.0.1:1", tls: {ca: ca.pem}}
  - {name: new, url: "https://127.0.0.1:2", tls: {ca: ca.pem}}
check: {post: /items, body: {file: item.json}, headers: {x-id: "{pick:ids.txt}"}}
loads: {replayed: {open: {arrivals: {replay: due.txt}, connections: 4}, for: 1s}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a redline.yaml and all that it names."""
    folder = tmp_path / "project"
    folder.mkdir()
    files = {"redline.yaml": PROJECT, "item.json": "{}", "ids.txt": "a\nb\n", "due.txt": "0.1\n0.2\n"}
    files["ca.pem"] = Certificate(tmp_path).files[0].read_text()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_suite_elsewhere_names_the_files_of_redline_yaml(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    done = CliRunner().invoke(app, ["ab", "--write-suite", "../elsewhere.yaml"])
    assert done.exit_code == 0, done.exception
    text = (project.parent / "elsewhere.yaml").read_text()
    for name in ("ca.pem", "item.json", "ids.txt", "due.txt"):
        assert f"project/{name}" in text
    read = load_suite(project.parent / "elsewhere.yaml", Catalogue())
    assert read.scenarios[0].request.body is not None


def test_files_of_servers_are_those_of_redline_yaml_whoever_has_the_requests(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder below it with a path of its own, and with a list of requests in another folder."""
    below = project / "below"
    below.mkdir()
    (below / "requests.yaml").write_text("- {name: items, get: /items}\n")
    monkeypatch.chdir(below)
    written = read_project_file(project / "redline.yaml")
    for asked in (asks.load(path="/x"), asks.load(requests=below / "requests.yaml")):
        files = referenced(asked, written)
        assert files.text("ca.pem").startswith("-----BEGIN CERTIFICATE")
        assert files.text("due.txt") == "0.1\n0.2\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["load", URL, "-d", ""], "-d '': `` is not a duration"),
        (["load", URL, "--warmup", ""], "--warmup '': `` is not a duration"),
        (["load", URL, "--think", ""], "--think '': `` is not a duration"),
        (["load", URL, "-m", ""], "-m '': there is a single request"),
        (["limit", URL, "--objective", "p99 < 1s", "-d", ""], "-d '': `` is not a duration"),
        (["ab", URL, URL, "--builds", "0"], "--builds 0: must be at least 1"),
        (["ab", URL, URL, "--builds", "-3"], "--builds -3: must be at least 1"),
    ],
)
def test_a_value_without_a_meaning_is_not_the_default(words: list[str], says: str) -> None:
    done = written(*words)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(says)
    assert not FILE.exists()


def test_an_empty_name_selects_nothing() -> None:
    assert split(["a, b,", ""]) == ("a", "b", "")
    assert split(None) == split([]) == ()
