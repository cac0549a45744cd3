"""`redline init`: the file that is written, and what is refused."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.cli.commands import init
from redline.cli.project_text import name_of, project_text
from redline.driving.checks import Checked
from redline.errors import BuildError, LaunchError, UsageError
from redline.launching.failures import OF_COMMAND, FailedStart
from redline.launching.guard import LaunchOrder
from redline.model import Cell, Ready, Suite
from redline.suite.compose_services import is_compose_file, read_compose
from redline.suite.project import read_project

URL = "http://h:1/x"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./bin/shop {port}", "shop"),
        ("python3 -u shop.py --port {port}", "shop"),
        ("java -jar target/app.jar {port}", "app"),
        ("env A=b ./x {port}", "x"),
        ("/usr/bin/env -i PORT={port} npm start", "npm"),
        ("env {port}", "port"),
        ("go run ./cmd/shop.go {port}", "shop"),
        ("sh -c 'A=b exec ./shop {port}'", "shop"),
        ("bash -c 'cd x && node server.js {port}'", "server"),
        ("env PORT={port} sh -c 'cd api && npm start'", "npm"),
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


def test_its_first_line_names_the_schema_that_is_here() -> None:
    url = init._schema()
    schema = json.loads(Path(urlsplit(url).path).read_text())
    assert {"servers", "start", "check"} <= set(schema["properties"])
    text = project_text({"name": "shop", "start": "./shop --port {port}"}, {"check": {"get": "/"}}, url)
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={url}"
    assert text.endswith(project_text({"name": "shop", "start": "./shop --port {port}"}, {"check": {"get": "/"}}))
    assert read_project(text, "redline.yaml").scenarios


def test_a_wheel_names_the_schema_below_its_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment, of a user or of the system: packages and `share` have the same prefix."""
    monkeypatch.setattr(init, "__file__", str(tmp_path / "lib/python3.13/site-packages/redline/cli/commands/init.py"))
    assert init._schema() == ""
    schema = tmp_path / "share/doc/redline/docs/reference/project.schema.json"
    schema.parent.mkdir(parents=True)
    schema.write_text("{}")
    assert init._schema() == schema.as_uri()


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
        (["unix:/tmp/x"], "names a Unix socket"),
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
        ([f"curl {URL} -H 'A: b' -H \"B: $TOKEN\""], "curl: `$TOKEN` is for a shell to fill in"),
        ([f"curl {URL}?a=1&b=2"], "curl: `&` is for a shell"),
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


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("-u", "me:secret", "-H", "Accept: a/b"), "Authorization"),
        (("-d", "user=me&password=secret"), "password"),
        (("--json", '{"user": {"pin": 12}}'), "pin"),
        (("-F", "a=b", "-F", "api_key=secret"), "api_key"),
    ],
)
def test_a_secret_that_is_written_is_named(
    words: tuple[str, ...], names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, written in (("http://127.0.0.1:8080/", names), ("http://127.0.0.1:8080/?token=x&a=1", f"{names}, token")):
        done = run_init(monkeypatch, tmp_path, {"/": 200, "/?token=x&a=1": 200}, "curl", *words, url)
        assert done.exit_code == 0, done.exception
        (line,) = [line for line in done.output.splitlines() if line.startswith("redline.yaml holds a secret")]
        assert {*line.rpartition(": ")[2].split(", ")} == {*written.split(", ")}
        (tmp_path / "redline.yaml").unlink()


def test_an_answer_that_is_an_error_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_init(monkeypatch, tmp_path, {"/": 404}, "./shop {port}")
    assert "GET / is answered with status 404" in str(done.exception)
    assert "`redline init --path /items" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "fails", "within_ns"),
    [
        ("./shop {port}", 0, 10_000_000_000),
        ("./shop {port}", 1, 60_000_000_000),
        ("./shop {port}", 2, None),
        ("java -jar shop.jar {port}", 1, None),
    ],
)
def test_a_command_that_starts_slowly_gets_more_time(
    command: str, fails: int, within_ns: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = list[Suite]()

    def answers(suite: Suite, _cells: Sequence[Cell]) -> list[Checked]:
        starts.append(suite)
        if len(starts) <= fails:
            raise not_ready("nothing listened")
        return [answered(200)]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "_answers", answers)
    done = CliRunner().invoke(app, ["init", command])
    assert len(starts) == (1 if command.startswith("java") else min(fails + 1, 2))
    if within_ns is None:
        assert isinstance(done.exception, LaunchError)
        assert not list(tmp_path.iterdir())
    else:
        made = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
        assert made.own is not None
        assert made.server("shop").ready.within_ns == within_ns


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
        ("web: cd api && npm start\n", "env PORT={port} sh -c 'cd api && npm start'"),
        ("web: java $JAVA_OPTS -jar a.jar $PORT # x\n", "sh -c 'java $JAVA_OPTS -jar a.jar {port} # x'"),
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
    ("name", "text", "says"),
    [
        ("Dockerfile", "FROM scratch\n", "Dockerfile says how an image is built"),
        ("package.json", "{}", "`redline init 'env PORT={port} npm start'`"),
        ("Procfile", "worker: ./work\n", "Procfile: this Procfile has no server"),
        ("Procfile", "web ./x\n", "Procfile:1: this is not an entry of a Procfile"),
        ("Procfile", "a: b\nweb: cd 'x && ./shop $PORT\n", "Procfile:2: web: this is not a command: No closing"),
        ("Procfile", "web: ./shop $PORT {workers}\n", "Procfile:1: web: {workers} is not a placeholder"),
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


COMPOSE = """\
x-shared: &shared {ports: ["${WEB_PORT:-9000}:${PORT:-8000}"]}
services:
  db: {image: postgres}
  web: {<<: *shared, build: .}
"""


@pytest.mark.parametrize("name", ["compose.yaml", "compose.yml", "docker-compose.yml", "deploy/compose.prod.yaml"])
def test_a_compose_file_is_known_by_its_name(name: str) -> None:
    assert is_compose_file(name)
    assert not any(map(is_compose_file, ("openapi.yaml", "compose.json", "mycompose.yaml")))


@pytest.mark.parametrize(
    "ports",
    [
        "[8000]",
        "['8000']",
        "['80:8000']",
        "['127.0.0.1:80:8000/tcp']",
        "['${P}:8000', '53:53/udp']",
        "[{target: 8000, published: 80}, {target: 53, protocol: udp}]",
        "['1:8000', '2:8000', '70-80:90-100']",
    ],
)
def test_the_only_published_port_is_that_of_the_server(ports: str) -> None:
    text = f"services:\n  db: {{ports: !reset []}}\n  web: {{ports: {ports}}}\n"
    assert str(read_compose(text, "compose.yaml")) == "web:8000"


@pytest.mark.parametrize(
    ("text", "named", "says"),
    [
        (COMPOSE.replace("postgres", "x, ports: [5432]"), None, "compose.yaml publishes 2 ports: db:5432, web:8000"),
        (COMPOSE.replace("postgres", "x, ports: [5432]"), None, "such as redline init compose.yaml db:5432"),
        ("services: {web: {ports: [1, 2]}}", "web", "the service web publishes 2 ports: web:1, web:2"),
        ("services: {web: {}, db: }", None, "publishes no single TCP port"),
        ("services: {web: {ports: ['80-90:80-90']}}", None, "redline init compose.yaml web:8080"),
        ("services: {web: {}, db: }", "db", "redline init compose.yaml db:8080"),
        (COMPOSE, "shop", "compose.yaml has no service `shop`\n  hint: its services are: db, web"),
        (COMPOSE, "db:x", "db:x: `x` is not a port"),
        (COMPOSE, "db:70000", "`70000` is not a port"),
        ("services:\n  web: [", None, "compose.yaml:2:9: this is not YAML"),
        ("a: !!int x", None, "compose.yaml"),
        ("[]", None, "compose.yaml: there are no `services`"),
        ("", None, "compose.yaml: there are no `services`"),
    ],
)
def test_a_compose_file_without_one_server_is_refused(text: str, named: str | None, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_compose(text, "compose.yaml", named)
    assert says in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("variables", "port"),
    [({}, 8000), ({"PORT": "8123"}, 8123), ({"PORT": ""}, 8000), ({"WEB_PORT": "1"}, 8000)],
)
def test_variables_in_ports_have_the_values_of_the_environment(variables: dict[str, str], port: int) -> None:
    assert read_compose(COMPOSE, "compose.yaml", variables=variables).port == port
    assert read_compose("services: {a: {ports: ['80:$P']}}", "c", variables={"P": "81"}).port == 81


@pytest.mark.parametrize(
    ("text", "named", "says"),
    [
        ("services: {web: {ports: ['80:${P}']}}", None, "no single TCP port; not known is `${P}`, which is not set"),
        ("services: {web: {extends: {file: a.yaml, service: b}}}", "web", "not known is what web extends"),
        ("include: [a.yaml]", None, "not known is what it includes"),
        ("include: [a.yaml]\nservices: {db: {}}", "web", "what it includes is not read: add the port, redline init"),
    ],
)
def test_what_is_not_read_of_a_compose_file_is_named(text: str, named: str | None, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_compose(text, "compose.yaml", named)
    assert says in str(refused.value)


def test_a_service_that_is_included_needs_its_port() -> None:
    assert str(read_compose("include: [a.yaml]", "compose.yaml", "web:8080")) == "web:8080"


def test_a_service_may_be_named_with_its_port() -> None:
    assert str(read_compose(COMPOSE, "compose.yaml", "db:5432")) == "db:5432"
    assert str(read_compose(COMPOSE.replace("postgres", "x, ports: [5432]"), "compose.yaml", "web")) == "web:8000"


@pytest.mark.parametrize("words", [["compose.yaml"], ["compose.yaml", "web:8000"]])
def test_a_service_of_a_compose_file_is_a_server(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    done = run_init(monkeypatch, tmp_path, {"/items": 200}, "--path", "/items", *words)
    assert done.exit_code == 0, done.exception
    assert "the service web of compose.yaml, which listens on port 8000" in done.stderr
    made = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
    (server,) = made.written.servers or []
    assert (server.name, server.compose, server.service, server.port) == ("web", "compose.yaml", "web", 8000)
    assert made.scenarios[0].request.path == "/items"


@pytest.mark.parametrize(
    ("words", "statuses", "says"),
    [
        (["compose.yaml"], {"/": 404}, "such as `redline init --path /items compose.yaml`"),
        (["compose.yaml", "--path", "/x"], {}, "--path stands after the compose file\n  hint: flags stand before it"),
        (["compose.yaml", "web", "db"], {}, "db stands after the compose file"),
        (["docker-compose.yml"], {}, "docker-compose.yml"),
    ],
)
def test_a_compose_file_that_is_asked_wrongly_writes_nothing(
    words: list[str], statuses: Mapping[str, int], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    done = run_init(monkeypatch, tmp_path, statuses, *words)
    assert isinstance(done.exception, UsageError), done.exception
    assert says in str(done.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["compose.yaml"]
