"""The suite that the flags of `redline ab` write, and the errors for meaningless flags."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from redline.asking.catalogues import catalogue_of
from redline.asking.comparison import comparison_document
from redline.asking.origins import FromRepository
from redline.asking.requests import referenced
from redline.asking.written import Sourced, as_yaml, named_by_sources, plain, read_written
from redline.cli.command_line import app
from redline.errors import Location, Problem, UsageError
from redline.model import Body
from redline.schema.document import parse_document
from redline.suite import Catalogue, read_suite, referenced_files
from redline.suite.loading import load_suite
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.referenced_files import NO_FILES
from tests.fakes import asks
from tests.fakes.catalogues import small_catalogue

A, B = "./old --port {port}", "./new --port={port} '--name=a b'"
URL_A, URL_B = "http://127.0.0.1:1/x", "https://[::1]:2/x"
LIST = """\
- {name: items, get: /items, weight: 3}
- name: add
  post: /items
  body: '{"n": {seq}}'
  expect: {status: 201}
"""


def ends(written: str) -> tuple[str, str]:
    first, dots, second = written.partition("..")
    return (first, second if dots else "the work tree")


def written(a: str | None = A, b: str | None = B, **flags: Any) -> dict[str, object]:
    return comparison_document(asks.comparison(a=a, b=b, **flags), ends, lambda name: f"/here/{name}")


def document(a: str | None = A, b: str | None = B, **flags: Any) -> Any:
    return plain(written(a, b, **flags))


def test_two_commands_are_a_duet_of_a_minute() -> None:
    assert document() == {
        "servers": [
            {"name": "A", "command": A, "folder": "/here/."},
            {"name": "B", "command": B, "folder": "/here/."},
        ],
        "baseline": "A",
        "scenarios": [{"name": "requests", "get": "/"}],
        "loads": {"load": {"closed": {"users": 64}}},
        "budget": "60s",
        "metric": "cpu",
    }


def test_servers_of_the_catalogue_are_asked_what_a_ready_one_answers(tmp_path: Path) -> None:
    known = small_catalogue(tmp_path)
    sides = asks.comparison(a="fam.layered", b="slow.vanilla")
    found: Any = plain(comparison_document(sides, ends, str, known=known))
    assert found["servers"] == [{"use": "fam.layered"}, {"use": "slow.vanilla"}]
    assert found["baseline"] == "fam.layered"
    assert found["scenarios"] == [{"name": "requests", "get": "/path0"}]
    with_path = asks.comparison(a="fam.layered", b="slow.vanilla", path="/other")
    asked: Any = plain(comparison_document(with_path, ends, str, known=known))
    assert asked["scenarios"] == [{"name": "requests", "get": "/other"}]
    (tmp_path / "list.yaml").write_text(LIST)
    listed = asks.comparison(a="fam.layered", b="fam.plain", requests=tmp_path / "list.yaml")
    assert len(plain(comparison_document(listed, ends, str, known=known))["scenarios"]) == 3
    with pytest.raises(UsageError, match="compared with nothing"):
        comparison_document(asks.comparison(a="fam.layered"), ends, str, known=known)
    with pytest.raises(UsageError, match="names of their own"):
        comparison_document(asks.comparison(a="fam.layered", b="fam.plain", names="x,y"), ends, str, known=known)


def test_urls_give_their_path_and_say_how_they_are_reached() -> None:
    both = {"http2": True, "load": "open:2000/s"}
    made = document("http://h:1/x?a b", "http://h:2/x?a b", **both)
    assert made["servers"] == [
        {"name": "A", "url": "http://h:1", "http": 2},
        {"name": "B", "url": "http://h:2", "http": 2},
    ]
    assert made["scenarios"] == [{"name": "requests", "get": "/x?a%20b"}]
    assert made["loads"] == {"load": {"open": {"rate": "2000/s"}}}
    secure = document("https://h:1", "https://h:2", cacert=Path("ca.pem"))
    assert [server["tls"] for server in secure["servers"]] == [{"ca": "/here/ca.pem"}] * 2


def test_a_command_is_compared_with_a_url_by_its_path() -> None:
    made = document(A, "https://h:1/x", insecure=True)
    assert made["servers"] == [
        {"name": "A", "command": A, "folder": "/here/."},
        {"name": "B", "url": "https://h:1", "tls": {"insecure": True}},
    ]
    assert made["scenarios"] == [{"name": "requests", "get": "/x"}]


def test_a_revision_is_compared_with_a_url_by_its_project_or_by_a_path() -> None:
    made = document("main", "http://h:1")
    assert made["servers"] == [{"name": "A", "revision": "main"}, {"name": "B", "url": "http://h:1"}]
    assert "scenarios" not in made
    assert document("http://h:1/x", "main")["scenarios"] == [{"name": "requests", "get": "/x"}]


def test_revisions_are_asked_as_their_project_says_unless_a_flag_does() -> None:
    for flags in ({"git": "main..HEAD"}, {"a": "main..HEAD"}, {"a": "main", "b": "HEAD"}):
        made = document(**{"a": None, "b": None, **flags})
        assert made["servers"] == [{"name": "A", "revision": "main"}, {"name": "B", "revision": "HEAD"}]
        assert "scenarios" not in made
    assert document("main", None)["servers"][1] == {"name": "B", "revision": "the work tree"}
    assert document("main", None, path="/x")["scenarios"] == [{"name": "requests", "get": "/x"}]


def test_the_flags_of_a_request_are_one_scenario() -> None:
    made = document(path="/i", body="x", headers=["Cookie: a=1", "cookie:b=2", "K: v"], status=201, timeout="1s")
    assert made["scenarios"] == [
        {
            "name": "requests",
            "post": "/i",
            "headers": {"Cookie": ["a=1", "b=2"], "K": "v"},
            "body": "x",
            "expect": {"status": 201},
        }
    ]
    assert made["timeout"] == "1s"
    assert document(method="purge")["scenarios"] == [{"name": "requests", "method": "PURGE", "path": "/"}]
    assert document(method="put", body="@b")["scenarios"] == [
        {"name": "requests", "put": "/", "body": {"file": "/here/b"}}
    ]


def test_a_list_of_requests_is_a_scenario_for_each_and_their_mix(tmp_path: Path) -> None:
    file = tmp_path / "requests.yaml"
    file.write_text(LIST)
    add = {"post": "/items", "body": '{"n": {seq}}', "expect": {"status": 201}}
    made = document(requests=file)
    assert made["scenarios"] == [
        {"name": "items", "get": "/items"},
        {"name": "add", **add},
        {"name": "mix", "requests": [{"name": "items", "get": "/items", "weight": 3}, {"name": "add", **add}]},
    ]
    assert document(requests=file, scenarios=["it*"])["scenarios"] == [{"name": "items", "get": "/items"}]
    with pytest.raises(UsageError, match="-m item: there is no such request") as refused:
        document(requests=file, scenarios=["item"])
    assert "items" in refused.value.hint


def test_all_other_flags() -> None:
    made = document(same_answers=True, parallel=True, seed=7, threshold="3%", lasts="5m", metric="p95")
    assert {key: made[key] for key in ("same_answers", "design", "seed", "threshold", "budget", "metric")} == {
        "same_answers": True,
        "design": "parallel-duet",
        "seed": 7,
        "threshold": "3%",
        "budget": "5m",
        "metric": "p95",
    }


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"a": None, "b": None}, "there are no two servers to compare"),
        ({"b": None}, "./old --port {port} is compared with nothing"),
        ({"b": "localhost:8080"}, "localhost:8080 is neither a command nor a URL"),
        ({"git": "main..HEAD"}, "--git names both sides, and so does ./old"),
        ({"b": URL_A, "path": "/y"}, "--path /y: the URLs name their paths"),
        ({"b": URL_A, "insecure": True}, "--insecure means nothing without TLS"),
        ({"a": URL_A, "b": "http://h:2/y"}, "A is asked for /x and B for /y"),
        ({"a": URL_A, "b": URL_A, "path": "/x"}, "--path /x: the URLs name their paths"),
        ({"a": URL_A, "b": "http://a b/"}, "`a b` is not a host name"),
        ({"load": "closed"}, "--load closed is not a load"),
        ({"cacert": Path("ca.pem")}, "--cacert means nothing without TLS"),
        ({"a": URL_A, "b": URL_B, "insecure": True}, "--insecure means nothing without TLS"),
        ({"a": URL_B, "b": URL_B, "insecure": True, "cacert": Path("x")}, "--insecure takes any"),
        ({"method": "CONNECT"}, "-X CONNECT: "),
        ({"method": "GE T"}, "-X 'GE T': is not a method"),
        ({"headers": ["K"]}, "-H 'K' is not a header"),
        ({"body": "\udcff"}, "--body: it is not UTF-8"),
        ({"requests": Path("r"), "body": "x"}, "--body: --requests says what is requested"),
        ({"requests": Path("r"), "path": "/x"}, "--path /x: --requests says what is requested"),
        ({"requests": Path("none.yaml")}, "there is no file none.yaml"),
    ],
)
def test_what_means_nothing_is_refused(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        document(**flags)
    assert says in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("text", ["items: {get: /}", "- 17", "[]"])
def test_a_file_that_is_no_list_of_requests_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "requests.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"requests.yaml:1:1: this (is not a list of requests|list has no request)"):
        document(requests=file)


def problem(field: str) -> Problem:
    return Problem("is wrong", "mend it", Location("ab", 1, 2, field=field))


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("servers[0].command", "A: is wrong"),
        ("loads.load.closed.users", "--load closed:0: is wrong"),
        ("scenarios[0].get", "--path /x: is wrong"),
        ("scenarios[0].headers.K", "-H 'K: v': is wrong"),
        ("scenarios[0].expect.status", "--status 99: is wrong"),
        ("seed", "--seed -1: is wrong"),
        ("warmup", "warmup: is wrong"),
    ],
)
def test_what_is_wrong_names_its_flag(field: str, named: str) -> None:
    made = written(load="closed:0", path="/x", headers=["K: v"], status=99, seed=-1)
    error = named_by_sources(UsageError.of_problems((problem(field),)), made)
    assert str(error) == f"{named}\n  hint: mend it"


def test_what_is_wrong_with_both_servers_is_said_once() -> None:
    made = written()
    problems = tuple(map(problem, ("servers[0].command", "servers[1].command")))
    assert str(named_by_sources(UsageError.of_problems(problems), made)) == "A and B: is wrong\n  hint: mend it"
    other = Problem("is wrong too", "mend it", problems[1].place)
    error = named_by_sources(UsageError.of_problems((problems[0], other)), made)
    assert [each.message for each in error.problems] == ["A: is wrong", "B: is wrong too"]


def test_what_is_wrong_in_a_list_of_requests_is_named_by_its_place_once(tmp_path: Path) -> None:
    file = tmp_path / "requests.yaml"
    file.write_text(LIST)
    fields = ("scenarios[1].expect.status", "scenarios[2].requests[1].expect.status")
    error = named_by_sources(UsageError.of_problems(tuple(map(problem, fields))), written(requests=file))
    assert str(error) == f"{file}:5:20: [1].expect.status: is wrong\n  hint: mend it"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner)),
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1))
def test_a_written_suite_reads_as_it_was(value: dict[str, Any]) -> None:
    assert parse_document(as_yaml(Sourced("-x", value)), "suite.yaml").value == value


def test_a_written_suite_is_as_people_write_it() -> None:
    assert as_yaml(written(path="/items")) == (
        "servers:\n"
        "  - {name: A, command: './old --port {port}', folder: /here/.}\n"
        "  - {name: B, command: \"./new --port={port} '--name=a b'\", folder: /here/.}\n"
        "baseline: A\n"
        "scenarios:\n"
        "  - {name: requests, get: /items}\n"
        "loads:\n"
        "  load: {closed: {users: 64}}\n"
        "budget: 60s\n"
        "metric: cpu\n"
    )


def test_a_suite_sends_files_and_has_any_method(tmp_path: Path) -> None:
    document = {
        "servers": [{"name": "A", "command": A}, {"name": "B", "command": B, "folder": "new"}],
        "scenarios": [{"name": "purge", "method": "PURGE", "path": "/x", "body": {"file": "item.bin"}}],
        "loads": {"load": {"closed": {"users": 1}}},
        "budget": "60s",
    }
    (tmp_path / "item.bin").write_bytes(b"\xff\x00")
    (tmp_path / "out.bin").symlink_to("/etc/hostname")
    origins = FromRepository(tmp_path).origins()
    files = referenced_files(tmp_path / "suite.yaml")
    suite, _ = read_written(document, "ab", files, origins)
    request = suite.scenarios[0].request
    assert (request.method, request.path, request.body and request.body.raw) == ("PURGE", "/x", b"\xff\x00")
    assert [variant.catalogued.family_folder for variant in suite.variants] == [str(tmp_path), str(tmp_path / "new")]
    document["scenarios"] = [{"name": "post", "post": "/", "body": {"file": "out.bin"}}]
    with pytest.raises(UsageError, match=r"body\.file: .*leads out of the folder"):
        read_written(document, "ab", files, origins)


def test_a_list_of_requests_sends_files_of_its_folder(tmp_path: Path) -> None:
    """Only files that flags name themselves may be anywhere."""
    (tmp_path / "lists").mkdir()
    file, ca = tmp_path / "lists" / "requests.yaml", tmp_path / "ca.pem"
    (file.parent / "item.bin").write_bytes(b"\xff\x00")
    ca.write_text("a certificate")
    file.write_text("- {name: a, get: /}\n- {name: b, put: /b, body: {file: item.bin}}\n")
    flags = asks.comparison(a=A, b=B, requests=file, cacert=ca)
    read, _ = read_written(document(requests=file), "ab", referenced(flags))
    assert [scenario.requests[-1].body for scenario in read.scenarios[1:]] == [Body(raw=b"\xff\x00")] * 2
    assert referenced(flags).text(str(ca)) == "a certificate"
    for outside in ("/etc/hostname", "../ca.pem"):
        file.write_text(f"- {{name: b, put: /b, body: {{file: {outside}}}}}\n")
        with pytest.raises(UsageError, match=r"requests.yaml:1:\d+: .*leads out of the folder"):
            read_written(written(requests=file), "ab", referenced(flags))


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"load": "open:2000/s", "lasts": "90s", "threshold": "3%"},
        {"headers": ["X-Text: on", "X-Number: 017", "X: a\tb: c # d"], "body": "{a: [1, 2]}\n\x07\u2028"},
        {"status": 404, "http2": True, "events": "sse until 20"},
    ],
)
def test_the_suite_of_values_is_that_of_its_text(flags: dict[str, Any]) -> None:
    suite, text = read_written(written("http://127.0.0.1:1/x", "http://127.0.0.1:2/x", **flags), "ab", NO_FILES)
    assert read_suite(text, "ab", Catalogue(), Overrides()) == suite


def test_what_no_file_can_hold_is_refused_in_values_too() -> None:
    with pytest.raises(UsageError, match="does not stand for a character"):
        read_written(written(headers=["X: \udcff"]), "ab", NO_FILES)


def test_problems_of_values_come_in_their_order() -> None:
    made = {**written(load="open:5x", lasts="1"), "design": "x"}
    with pytest.raises(UsageError) as refused:
        read_written(made, "ab", NO_FILES)
    places = [str(problem).partition(": ")[0] for problem in refused.value.problems]
    assert places == ["--load open:5x", "--for 1", "design"]


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list in a folder below that of the suite, with a body and a pick beside it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "item.bin").write_bytes(b"\xff\x00")
    (folder / "ids.txt").write_text("7\n")
    file = Path("lists", "requests.yaml")
    file.write_text("- {name: a, get: '/{pick:ids.txt}'}\n- {name: b, put: /b, body: {file: item.bin}}\n")
    return file


def write_suite(requests: Path) -> Result:
    return CliRunner().invoke(app, ["ab", A, B, "--requests", str(requests), "--write-suite", "suite.yaml"])


def test_a_written_suite_names_the_files_of_a_list_from_its_own_folder(requests: Path) -> None:
    done = write_suite(requests)
    assert done.exit_code == 0, done.exception
    text = Path("suite.yaml").read_text()
    assert text.startswith("# Measure it with: redline run suite.yaml\nservers:\n")
    assert "{name: a, get: '/{pick:lists/ids.txt}'}" in text
    suite = load_suite(Path("suite.yaml"), Catalogue())
    assert suite.scenarios[0].picks == {"lists/ids.txt": ("7",)}
    assert suite.scenarios[1].request.body == Body(raw=b"\xff\x00")


def test_mistakes_of_a_list_are_placed_in_it_when_a_suite_is_written(requests: Path) -> None:
    requests.write_text("- {name: a, get: /, expect: {status: 99}}\n")
    done = write_suite(requests)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("lists/requests.yaml:1:38: [0].expect.status: must be at least 200")
    assert not Path("suite.yaml").exists()


@pytest.mark.parametrize("target", [A, "http://127.0.0.1:1/", "HEAD"])
def test_a_server_is_compared_with_itself_behind_a_proxy(target: str) -> None:
    made = document(target, None, route="nginx")
    (server,) = made["servers"]
    assert server["route"] == ["direct", "nginx"]
    assert "baseline" not in made
    assert made["budget"] == "60s"


def test_that_suite_finds_the_proxy_and_its_flag_is_named() -> None:
    found = catalogue_of(made := written(A, None, route="nginx"), Path.cwd())
    suite, _ = read_written(made, "ab", referenced(asks.comparison(a=A)), catalogue=found)
    assert [variant.slug for variant in suite.variants] == ["old", "old+via=nginx"]
    assert suite.baseline == "old"
    with pytest.raises(UsageError, match="--route ngnix: there is no route and no proxy `ngnix`") as refused:
        read_written(written(A, None, route="ngnix"), "ab", referenced(asks.comparison(a=A)), catalogue=found)
    assert "`nginx`" in refused.value.hint


@pytest.mark.parametrize("flags", [{"b": B}, {"a": None}, {"a": None, "git": "main"}, {"git": "main"}])
def test_it_is_one_server(flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--route nginx compares a server with itself behind a proxy"):
        document(**{"a": A, "b": None, "route": "nginx"} | flags)


@pytest.mark.parametrize(
    ("written_names", "names"),
    [
        ("main,this pull request", ["main", "this pull request"]),
        (" release/1.2 , this merge request", ["release-1.2", "this merge request"]),
        ("v1.2,HEAD~1", ["v1.2", "HEAD~1"]),
        ("release@2,feat+x", ["release-2", "feat-x"]),
        ("fix#12,\u00e9mile/caf\u00e9", ["fix-12", "mile-caf-"]),
    ],
)
def test_the_two_have_other_names_where_they_are_given(written_names: str, names: list[str]) -> None:
    made = document(names=written_names)
    assert [server["name"] for server in made["servers"]] == names
    assert made["baseline"] == names[0]
    suite, _ = read_written(written(names=written_names), "ab", referenced(asks.comparison(a=A, b=B)))
    assert [variant.slug for variant in suite.variants] == names


@pytest.mark.parametrize("wrong", ["main", "a,b,c", "a,a", "a/b,a-b", ",b", "a,@", "a,b  c", "a,b\x1b", "a,b\u202e"])
def test_names_that_are_not_two_names_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="--names"):
        written(names=wrong)


def test_servers_with_names_of_their_own_take_no_others() -> None:
    with pytest.raises(UsageError, match="names of their own"):
        written(A, None, route="nginx", names="a,b")
