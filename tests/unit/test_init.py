"""`redline init`: command lines of curl, the file that is written, and what is refused."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.cli.commands import init
from redline.cli.curl import is_curl, read_curl, split_curl
from redline.cli.project_text import name_of, project_text
from redline.errors import LaunchError, UsageError
from redline.model import Cell, Ready, Suite
from redline.plugins.checks import Checked
from redline.plugins.launchers.failures import OF_COMMAND, FailedStart
from redline.plugins.launchers.guard import LaunchOrder
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
        (
            f"{URL} -d a=1 --data-urlencode 'b=c d&e' --data-urlencode '=f g' --data-raw h",
            None,
            [FORM],
            "a=1&b=c%20d%26e&f%20g&h",
        ),
        (f"{URL} -k --proto '=https' -fsSL --max-redirs 3 -c jar.txt", None, [], None),
        (f"{URL} -u user:pass", None, ["Authorization: Basic dXNlcjpwYXNz"], None),
        (f"{URL} --oauth2-bearer abc", None, ["Authorization: Bearer abc"], None),
        (f"{URL} -u user:pass -H 'authorization: mine'", None, ["authorization: mine"], None),
        (f"{URL} --json '{{\"a\":' --json '1}}'", None, JSON, '{"a":1}'),
        (f"{URL} --compressed -o /dev/null", None, ["Accept-Encoding: deflate, gzip"], None),
        (f"{URL} --compressed -H 'accept-encoding: gzip'", None, ["accept-encoding: gzip"], None),
        (f"{URL} -A me -b c=1 -H 'User-Agent: you' -H 'Cookie:'", None, ["User-Agent: you"], None),
    ],
)
def test_a_command_of_curl_is_a_request(text: str, method: str | None, headers: list[str], body: str | None) -> None:
    flags = read_curl(shlex.split(text))
    assert (flags.url, flags.method, flags.headers, flags.body) == (URL, method, headers, body)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (f"-G {URL} -d a=1 --data-urlencode 'b=c d'", f"{URL}?a=1&b=c%20d"),
        (f"-G '{URL}?z=0' -d a=1", f"{URL}?z=0&a=1"),
        (f"-g '{URL}/[1-3]'", f"{URL}/[1-3]"),
        (f"'{URL}/{{id}}'", f"{URL}/{{id}}"),
    ],
)
def test_data_may_be_the_query(text: str, url: str) -> None:
    flags = read_curl(shlex.split(text))
    assert (flags.url, flags.method, flags.headers, flags.body) == (url, None, [], None)


@pytest.mark.parametrize(
    "text",
    [
        f"curl {URL} \\\n -H 'A: b' --data-raw $'it\\'s \\u0021'",
        f'$ curl {URL} \\\n -H "A: b" --data-raw "it\'s !"',
        f"/usr/bin/curl -s {URL} -H 'A: b' --data-raw \"it's !\" 2>/dev/null | jq . > out.json",
    ],
)
def test_a_command_may_be_one_text(text: str) -> None:
    program, *words = split_curl(text)
    assert is_curl(program)
    flags = read_curl(words)
    assert (flags.url, flags.headers, flags.body) == (URL, ["A: b", FORM], "it's !")


def test_the_scheme_may_be_missing() -> None:
    assert read_curl(["localhost:8080/x"]).url == "http://localhost:8080/x"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-X GET", "has no URL"),
        (f"{URL} {URL}", "has several URLs"),
        (f"-F a=b {URL}", "-F has no counterpart"),
        ("-k https://h:1/x", "-k has no counterpart"),
        (f"--form a=b {URL}", "--form has no counterpart"),
        (f"{URL} -b cookies.txt", "-b cookies.txt: this is a file"),
        (f"{URL} -H @headers.txt", "-H @headers.txt: headers are not read from files"),
        (f"{URL} -H 'A;'", "'A;' is not a header with a value"),
        (f"{URL} -d @-", "the body is read from the standard input"),
        (f"{URL} -G -d @a", "-G -d @a: a file is no query"),
        (f"{URL} --data-urlencode @a", "--data-urlencode @a: files are not encoded"),
        (f"{URL} -u user", "-u user: curl asks for the password"),
        (f"'{URL}/[1-9]'", "curl makes several URLs of `[1-9]`"),
        (f"'{URL}/{{a,b}}'", "curl makes several URLs of `{a,b}`"),
        (f"'{URL}' ^ -H 'A: b'", "`^` is for the command prompt of Windows"),
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
    made = read_project(project_text({"name": "shop", "start": start}, check), "redline.yaml")
    (server,) = made.written.servers or []
    assert (server.name, server.start) == ("shop", start)
    request = made.scenarios[0].request
    assert (request.method, request.path, request.expect.status) == ("POST", "/items", 201)
    assert request.body is not None
    assert request.body.text == check["body"]


def test_its_comments_may_be_used_as_they_are() -> None:
    text = project_text({"name": "shop", "start": "./shop --port {port}"}, {"get": "/"})
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


@pytest.mark.parametrize("status", [204, 302])
def test_a_server_that_is_ready_with_another_status_is_started_again(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = Checked(
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

    def answer(_suite: Suite, cell: Cell) -> Checked:
        if cell.variant.catalogued.ready.status != status:
            raise not_ready(status)
        return answered

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "_answer", answer)
    done = CliRunner().invoke(app, ["init", "./shop {port}"])
    assert done.exit_code == 0, done.exception
    assert f"GET /: status {status}, 0 bytes" in done.output
    made = read_project((tmp_path / "redline.yaml").read_text(), "redline.yaml")
    assert made.scenarios[0].request.expect.status == status


@pytest.mark.parametrize(
    ("saw", "says"),
    [
        (404, "GET / is answered with status 404\n  hint: give a request that it answers, such as `redline init --p"),
        ("nothing listened", "if it only needs longer, start it yourself, and give its URL"),
        ("malformed: x", "fix what answers so, or give another request with --path"),
    ],
)
def test_hints_for_a_server_that_is_not_ready_are_about_init(
    saw: int | str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_suite: Suite, _cell: Cell) -> Checked:
        raise not_ready(saw)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "_answer", answer)
    done = CliRunner().invoke(app, ["init", "./shop {port}"])
    assert says in str(done.exception)
    assert "redline.yaml" not in str(done.exception)
    assert not list(tmp_path.iterdir())
