"""`redline view` on a socket: methods, heads, files, a port in use, and how the command ends."""

import http.client
import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.errors import UsageError
from redline.viewing.server import ViewServer, listening, send_part
from redline.viewing.site import Site
from tests.fakes.histories import stored_run


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    stored_run(tmp_path, 0)
    with listening(Site([tmp_path]), 0) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(server: ViewServer, method: str, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_it_listens_on_the_loopback_address_alone(server: ViewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.port}/{server.site.token}/"


def test_get_and_head_of_a_page(server: ViewServer) -> None:
    path = f"/{server.site.token}/"
    response, content = ask(server, "GET", path)
    assert (response.status, int(response.headers["Content-Length"])) == (200, len(content))
    assert b"run-00" in content
    assert response.headers["Server"] == "redline"
    head, nothing = ask(server, "HEAD", path)
    assert (head.status, nothing) == (200, b"")
    assert {**head.headers, "Date": ""} == {**response.headers, "Date": ""}


def test_a_file_is_sent_with_its_length(server: ViewServer) -> None:
    (key,) = server.site.folders.places()
    response, content = ask(server, "GET", f"/{server.site.token}/run/{key}/run.json")
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert int(response.headers["Content-Length"]) == len(content) > 100


@pytest.mark.parametrize(("length", "sent"), [(4, b"abcd"), (6, b"abcdef"), (9, b"abcdef"), (0, b"")])
def test_no_more_is_sent_of_a_file_that_grows(length: int, sent: bytes) -> None:
    to = io.BytesIO()
    send_part(io.BytesIO(b"abcdef"), to, length)
    assert to.getvalue() == sent


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "__class__"])
def test_other_methods_are_refused(server: ViewServer, method: str) -> None:
    response, content = ask(server, method, f"/{server.site.token}/")
    assert (response.status, content) == (405, b"")


@pytest.mark.parametrize("path", ["/", "/wrong/", "/%00/", "/../", "//", "*", "/favicon.ico"])
def test_without_the_token_there_is_nothing(server: ViewServer, path: str) -> None:
    response, content = ask(server, "GET", path)
    assert (response.status, content) == (403, b"")


def test_another_host_gets_nothing(server: ViewServer) -> None:
    response, content = ask(server, "GET", f"/{server.site.token}/", Host="evil.example")
    assert (response.status, content) == (403, b"")


@pytest.mark.parametrize(
    "sent", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"\xff\xfe\r\n\r\n"]
)
def test_what_is_no_request_gets_no_page(server: ViewServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        content = b""
        while piece := raw.recv(65536):
            content += piece
    assert b"<" not in content
    assert ask(server, "HEAD", f"/{server.site.token}/")[0].status == 200, "it goes on"


def test_a_port_in_use_is_one_message(server: ViewServer) -> None:
    port = server.port
    with pytest.raises(UsageError, match=f"--port {port}: 127.0.0.1:{port} cannot be listened on: Address already"):
        listening(Site([]), port).__enter__()
    done = CliRunner().invoke(app, ["view", "--port", str(port), "."])
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2


@pytest.mark.parametrize("port", ["-1", "65536", "99999999999"])
def test_what_is_no_port_is_refused(port: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["view", "--port", port, str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert f"--port {port} is no port" in done.exception.message


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_folder_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["view", str(tmp_path / kind)])
    assert isinstance(done.exception, UsageError)
    assert kind in done.exception.message


def test_a_fault_of_ours_is_said_and_the_server_goes_on(
    server: ViewServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = server.site.answer
    monkeypatch.setattr(server.site, "answer", lambda method, *_: dict[str, str]()[method])
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "GET", f"/{server.site.token}/")
    monkeypatch.setattr(server.site, "answer", answer)
    assert ask(server, "GET", f"/{server.site.token}/")[0].status == 200
    assert capsys.readouterr().err.startswith("redline: a page could not be made: KeyError: 'GET'\n  hint: ")
