"""`redline init`: command lines of curl, the file that is written, and what is refused."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.cli.commands import init
from redline.cli.project_text import name_of, project_text
from redline.errors import BuildError, LaunchError, UsageError
from redline.model import Cell, Ready, Suite
from redline.plugins.checks import Checked
from redline.plugins.launchers.failures import OF_COMMAND, FailedStart
from redline.plugins.launchers.guard import LaunchOrder
from redline.suite.importing.curl import read_curl
from redline.suite.project import read_project

FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = ["Content-Type: application/json", "Accept: application/json"]
URL = "http://h:1/x"


@pytest.mark.parametrize(
    ("text", "method", "headers", "body"),
    [
        (URL, None, [], None),
        (f"-sS -XPUT '{URL}' -H 'A: b' -H 'Connection: close' -H 'Expect:' -L", "PUT", ["A: b"], None),
        (f"{URL} -d a=1 --data-raw b=2", None, [FORM], "a=1&b=2"),
        (f"{URL} -d '{{}}' -H 'content-type: text/x'", None, ["content-type: text/x"], "{}"),
        (f"--json '{{}}' {URL}", None, JSON, "{}"),
        (f"{URL} --data-binary @item.json", None, [FORM], "@item.json"),
        (f"-I --url {URL} -A me -b c=1", "HEAD", ["User-Agent: me", "Cookie: c=1"], None),
        (f"{URL} --compressed -o /dev/null", None, ["Accept-Encoding: deflate, gzip"], None),
        (f"{URL} --compressed -H 'accept-encoding: gzip'", None, ["accept-encoding: gzip"], None),
        (f"{URL} -A me -b c=1 -H 'User-Agent: you' -H 'Cookie:'", None, ["User-Agent: you"], None),
    ],
)
def test_a_command_of_curl_is_a_request(text: str, method: str | None, headers: list[str], body: str | None) -> None:
    flags = read_curl(shlex.split(text))
    assert (flags.url, flags.method, flags.headers, flags.body) == (URL, method, headers, body)


def test_the_scheme_may_be_missing() -> None:
    assert read_curl(["localhost:8080/x"]).url == "http://localhost:8080/x"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-X GET", "has no URL"),
        (f"{URL} {URL}", "has several URLs"),
        (f"-F a=b {URL}", "-F has no counterpart"),
        (f"{URL} -k", "-k has no counterpart"),
        (f"{URL} --frobnicate", "--frobnicate is not known"),
        (f"{URL} -H", "curl: argument -H"),
        (f"{URL} -d @a -d b", "the body is a and more"),
        (f"{URL} --data-raw @mention", "--data-raw @mention: a text cannot begin with `@`"),
    ],
)
def test_what_has_no_counterpart_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_curl(shlex.split(text))
    assert says in str(refused.value)
    assert refused.value.hint


@given(st.lists(st.text(), max_size=5))
def test_any_command_line_is_read_or_refused(words: list[str]) -> None:
    try:
        assert read_curl(words).url
    except UsageError:
        return


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./bin/shop {port}", "shop"),
        ("python3 -u shop.py --port {port}", "shop"),
        ("java -jar target/app.jar {port}", "app"),
        ("env A=b ./x {port}", "env"),
        ("'./my shop!' {port}", "my-shop"),
        ("./. {port}", "server"),
    ],
)
def test_a_server_is_called_by_its_program(command: str, name: str) -> None:
    assert name_of(shlex.split(command)) == name


@pytest.mark.parametrize("start", ["./shop --port {port}", f"./shop --port {{port}} {'x' * 200} 'a: b' # c"])
def test_what_is_written_is_read_as_it_was_meant(start: str) -> None:
    check = {"post": "/items", "headers": {"A": "b: c"}, "body": '{"n": "{seq}"}\n', "expect": {"status": 201}}
    made = read_project(project_text({"name": "shop", "start": start}, {"check": check}), "redline.yaml")
    (server,) = made.written.servers or []
    assert (server.name, server.start) == ("shop", start)
    request = made.scenarios[0].request
    assert (request.method, request.path, request.expect.status) == ("POST", "/items", 201)
    assert request.body is not None
    assert request.body.text == check["body"]


def test_its_comments_may_be_used_as_they_are() -> None:
    text = project_text({"name": "shop", "start": "./shop --port {port}"}, {"check": {"get": "/"}})
    lines = [line[1:] if line.startswith(("#  - ", "# objective")) else line for line in text.splitlines()]
    made = read_project("\n".join(line.strip() if "objective" in line else line for line in lines), "redline.yaml")
    assert [server.name for server in made.written.servers or ()] == ["shop", "other"]
    assert made.written.objective


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no server is named"),
        (["./shop", "--port", "8080"], "has no {port}"),
        (["A=b ./shop {port}"], "is for a shell"),
        (["unix:/tmp/x"], "not over a Unix socket"),
        (["--path", "/x", URL], "--path /x: the URL names its path"),
        ([URL, "--path", "/y"], "--path stands after the URL\n  hint: a URL is given alone"),
        ([URL, "http://h:2/x"], "http://h:2/x stands after the URL"),
        (["localhost:8080", "--path", "/y"], "--path stands after the URL"),
        (["curl", URL, "--path", "/y"], "--path is not known here\n  hint: a URL is given alone"),
        (["ftp://127.0.0.1/"], "cannot load ftp://"),
        (["curl", "ftp://127.0.0.1/"], "cannot load ftp://"),
        (["--path", "x", "./shop {port}"], "--path x: `x` is not a path"),
        (["curl", URL, "-H", "A B: c"], "-H 'A B: c': `A B` is not a header name"),
        (["curl 'x"], "no closing quotation"),
        ([f"curl {URL} --data-raw $'it\\'s'"], "curl: `$'…'` is for a shell"),
    ],
)
def test_what_is_no_server_is_refused(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", *words])
    assert isinstance(done.exception, UsageError), done.exception
    assert says in str(done.exception)
    assert "redline.yaml" not in done.exception.message
    assert not list(tmp_path.iterdir())


def test_a_file_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "redline.yaml").write_text("mine")
    done = CliRunner().invoke(app, ["init", URL])
    assert "exists already" in str(done.exception)
    assert (tmp_path / "redline.yaml").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    done = CliRunner().invoke(app, ["init", "touch started {port}"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint == "change to a folder that you may write to"
    assert not list(tmp_path.iterdir())


def not_ready(saw: int | str) -> LaunchError:
    order = LaunchOrder(
        command=("shop",), folder=Path(), env={}, cpus=(), log=Path("none"), grace_ns=0, cgroup_parent=None
    )
    return FailedStart("shop", "127.0.0.1", 1, order, OF_COMMAND).not_ready(Ready(), saw, "")


def answered(status: int) -> Checked:
    return Checked(
        event="checked",
        outcome="ok",
        failure=None,
        status=status,
        headers=(),
        body_length=0,
        body_sha256=None,
        body_base64=None,
        elapsed_ns=1,
    )


def run_init(monkeypatch: pytest.MonkeyPatch, folder: Path, statuses: Mapping[str, int], *words: str) -> Result:
    """`redline init` of a server that answers these paths with these statuses."""

    def answers(_suite: Suite, cells: Sequence[Cell]) -> list[Checked]:
        return [answered(statuses[cell.scenario.request.path]) for cell in cells]

    monkeypatch.chdir(folder)
    monkeypatch.setattr(init, "_answers", answers)
    return CliRunner().invoke(app, ["init", *words])


@pytest.mark.parametrize("status", [204, 302])
def test_the_status_of_the_answer_is_what_is_expected(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_init(monkeypatch, tmp_path, {"/": status}, "./shop {port}")
    assert done.exit_code == 0, done.exception
    assert f"GET /: status {status}, 0 bytes" in done.output
    made = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
    assert made.scenarios[0].request.expect.status == status


def test_an_answer_that_is_an_error_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_init(monkeypatch, tmp_path, {"/": 404}, "./shop {port}")
    assert "GET / is answered with status 404" in str(done.exception)
    assert "`redline init --path /items" in str(done.exception)
    assert not list(tmp_path.iterdir())


API = """\
openapi: 3.1.0
servers: [{url: http://localhost:8080}]
paths:
  /items: {post: {responses: {'201': {}}}, get: {operationId: list, responses: {'200': {}}}}
  /items/{id}: {get: {parameters: [{name: id, in: path, schema: {type: integer}}], responses: {'200': {}}}}
"""


def test_the_requests_of_a_file_are_kept_if_they_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "api.yaml").write_text(API)
    statuses = {"/items": 202, "/items/1": 404}
    for words in (["--requests", "api.yaml", "./shop {port}"], ["api.yaml"]):
        (tmp_path / "redline.yaml").unlink(missing_ok=True)
        done = run_init(monkeypatch, tmp_path, statuses, *words)
        assert done.exit_code == 0, done.exception
        assert "GET /items: status 202" in done.output
        assert "left out: GET /items/1: status 404" in done.output
        assert "made up (1): values that were made from schemas" in done.output
        made = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
        assert [(scenario.name, scenario.request.method) for scenario in made.scenarios] == [
            ("list", "GET"),
            ("post-items", "POST"),
            ("mix", "GET"),
        ]
        assert {request.expect.status for request in made.scenarios[2].requests} == {202}
        (server,) = made.written.servers or []
        assert (server.start, server.url) == (
            ("./shop {port}", None) if len(words) > 1 else (None, "http://localhost:8080")
        )


def test_what_no_server_answers_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "api.yaml").write_text(API)
    done = run_init(monkeypatch, tmp_path, {"/items": 401, "/items/1": 404}, "--requests", "api.yaml", "./shop {port}")
    assert "no request is answered; left out: GET /items: status 401" in str(done.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["api.yaml"]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("web: ./shop --port $PORT\nworker: ./work\n", "./shop --port {port}"),
        ("# of Heroku\nworker: ./work\nweb: ./shop -p${PORT:-3000}\n", "./shop -p{port}"),
        ("worker: ./work\napi: ./shop ${PORT}\n", "./shop {port}"),
        ("web: node shop.js\n", "env PORT={port} node shop.js"),
    ],
)
def test_a_procfile_names_the_command(text: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Procfile").write_text(text)
    done = run_init(monkeypatch, tmp_path, {"/": 200}, "Procfile")
    assert done.exit_code == 0, done.exception
    (server,) = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml").written.servers or []
    assert server.start == start


def test_a_build_runs_first_and_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    done = run_init(monkeypatch, tmp_path, {"/": 200}, "--build", "echo built > out", "./shop {port}")
    assert done.exit_code == 0, done.exception
    assert "redline ab main..HEAD" in done.output
    assert (tmp_path / "out").read_text() == "built\n"
    project = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
    (server,) = project.written.servers or []
    assert (server.build, server.start) == ("echo built > out", "./shop {port}")
    assert project.build == "echo built > out"  # of revisions, too


def test_nothing_is_written_if_the_build_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_init(monkeypatch, tmp_path, {"/": 200}, "--build", "echo no compiler; exit 4", "./shop {port}")
    assert isinstance(done.exception, BuildError)
    assert "no compiler" in str(done.exception)
    done = run_init(monkeypatch, tmp_path, {"/": 200}, "--build", "make", "http://127.0.0.1:8080")
    assert "--build make: a server that is running is not built" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("port", "number"),
    [("8000", 8000), ("8080:80", 80), ("'127.0.0.1:8080:80/tcp'", 80), ("{target: 80, published: 8080}", 80)],
)
def test_a_compose_file_names_the_service_that_publishes_a_port(
    port: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"services:\n  db: {{image: postgres:15}}\n  shop: {{build: ., ports: [{port}]}}\n"
    (tmp_path / "compose.yaml").write_text(text)
    done = run_init(monkeypatch, tmp_path, {"/items": 200}, "--path", "/items", "compose.yaml")
    assert done.exit_code == 0, done.exception
    (server,) = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml").written.servers or []
    assert (server.name, server.compose, server.service, server.port) == ("shop", "compose.yaml", "shop", number)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("Dockerfile", "FROM scratch\n", "Dockerfile says how an image is built"),
        ("compose.yaml", "services: {db: {image: a}}\n", "compose.yaml: no service publishes a single port"),
        (
            "compose.yaml",
            "services: {web: {ports: ['80-90']}}\n",
            "such as `servers: [{name: web, compose: compose.yaml",
        ),
        ("compose.yaml", "services: {a: {ports: [1, 2]}}\n", "several ports are published: a (1), a (2)"),
        ("docker-compose.yml", "services: [\n", "docker-compose.yml: this is no YAML"),
        ("compose.dev.yaml", "a: b\n", "compose.dev.yaml: this compose file has no services"),
        ("Procfile", "worker: ./work\n", "Procfile: this Procfile has no server"),
        ("Procfile", "web ./x\n", "Procfile:1: this is no entry of a Procfile"),
        ("Procfile", "a: b\nweb: cd x && ./shop $PORT\n", "Procfile:2: web: "),
        ("Procfile", "web: ./shop $PORT $WORKERS\n", "`$WORKERS` is for a shell"),
        (
            "api.yaml",
            API.replace("localhost:8080", "shop.example"),
            "api.yaml names http://shop.example, which is not on this machine",
        ),
        (
            "api.yaml",
            "openapi: 3.1.0\npaths: {/: {get: {}}}\n",
            "api.yaml names no server\n",
        ),
        ("list.yaml", "- {name: a, get: /}\n", "list.yaml is a list of requests already"),
        ("none.yaml", "", "none.yaml:1:1: the file is empty"),
    ],
)
def test_a_file_that_names_no_server_is_refused(
    name: str, text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(text)
    done = run_init(monkeypatch, tmp_path, {}, name)
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("saw", "says"),
    [
        (503, "GET / is answered with status 503\n  hint: give a request that it answers, such as `redline init --p"),
        ("nothing listened", "if it only needs longer, start it yourself, and give its URL"),
        ("malformed: x", "fix what answers so, or give another request with --path"),
    ],
)
def test_hints_for_a_server_that_is_not_ready_are_about_init(
    saw: int | str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(_suite: Suite, _cells: Sequence[Cell]) -> list[Checked]:
        raise not_ready(saw)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "_answers", answers)
    done = CliRunner().invoke(app, ["init", "./shop {port}"])
    assert says in str(done.exception)
    assert "redline.yaml" not in str(done.exception)
    assert not list(tmp_path.iterdir())
