"""Forms of curl, -F: the body that curl itself sends, with a boundary that stays the same."""

import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from redline.errors import UsageError
from redline.extras.importing.curl import CurlRequest, read_curl

URL = "http://h:1/x"
HEAD = 'Content-Disposition: form-data; name="{}"'


def form(text: str, folder: Path = Path()) -> CurlRequest:
    return read_curl(shlex.split(text), read=lambda name: (folder / name).read_bytes())


def boundary_of(request: CurlRequest) -> str:
    (kind,) = [header for header in request.headers if header.lower().startswith("content-type:")]
    return kind.partition("boundary=")[2]


def test_fields_become_parts_with_a_boundary_that_stays_the_same() -> None:
    request = form(f"{URL} -F name=Ann -F 'age=7;type=text/x' -H 'A: b'")
    boundary = boundary_of(request)
    assert (request.url, request.method) == (URL, None)
    assert request.headers == ["A: b", f"Content-Type: multipart/form-data; boundary={boundary}"]
    parts = [
        [f"--{boundary}", HEAD.format("name"), "", "Ann"],
        [f"--{boundary}", HEAD.format("age"), "Content-Type: text/x", "", "7"],
    ]
    assert request.body == "".join(f"{line}\r\n" for line in (*parts[0], *parts[1], f"--{boundary}--"))
    assert form(f"{URL} -F name=Ann -F 'age=7;type=text/x'").body == request.body
    assert boundary_of(form(f"{URL} -F name=Bob")) != boundary


@pytest.mark.skipif(shutil.which("curl") is None, reason="it compares with curl itself: install curl")
@pytest.mark.parametrize(
    "options",
    [
        "-F name=Ann -F empty= --form-string 'raw=@a;type=b'",
        "-F 'page=@page.html' -F 'other=@page.html;type=text/x;charset=utf-8;filename=\"a;b\\\"c\"'",
        "-F 'text=<page.html' -F 'text=<notes.txt' -F 'file=@notes.txt' -F 'data=@data'",
        "-F 'a\"b=quoted' -F 'c=\"x;y\";type=text/plain'",
        "-F a=b -H 'Content-Type: multipart/form-data'",
    ],
)
def test_the_body_is_what_curl_sends(options: str, tmp_path: Path) -> None:
    for name, text in {"page.html": "<p>é</p>\n", "notes.txt": "notes", "data": "1;2\r\n"}.items():
        (tmp_path / name).write_bytes(text.encode())
    sent = _sent_by_curl(options, tmp_path)
    request = form(f"{URL} {options}", tmp_path)
    head, _, body = sent.partition(b"\r\n\r\n")
    boundary = re.search(rb"boundary=(\S+)", head)
    assert boundary is not None
    assert request.body is not None
    assert request.body.encode().replace(boundary_of(request).encode(), boundary[1]) == body
    kind = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-type:"))
    (ours,) = [header for header in request.headers if header.lower().startswith("content-type:")]
    assert ours.replace(boundary_of(request), "B") == kind.decode().replace(boundary[1].decode(), "B")


def _sent_by_curl(options: str, folder: Path) -> bytes:
    """What curl itself writes for a command."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        received = list[bytes]()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(20)
                data = b""
                while (head := data.partition(b"\r\n\r\n"))[1] == b"" or len(head[2]) < _length(head[0]):
                    data += connection.recv(65536)
                received.append(data)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        subprocess.run(
            ["curl", "-s", "-q", "--noproxy", "*", "-m", "20", url, *shlex.split(options)], cwd=folder, check=True
        )
        thread.join(20)
        return received[0]


def _length(head: bytes) -> int:
    match = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return int(match[1]) if match else 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-F name", "'name' has no value"),
        ("-F a=b -d c=d", "-F stands beside -d"),
        ("-F a=b -H 'content-type: multipart/mixed'", "-F stands beside -H 'content-type: multipart/mixed'"),
        ("-F a=b -G", "-F stands beside -d or -G"),
        ("-F 'a=(;type=multipart/mixed'", "nested parts have no counterpart"),
        ("-F 'a=@one,two'", "several files have no counterpart"),
        ("-F a=@-", "this is the standard input"),
        ("-F 'a=b;headers=\"X: y\"'", "`;headers` has no counterpart"),
        ("-F a=@photo.png", "photo.png is not text"),
    ],
)
def test_what_has_no_counterpart_is_refused(options: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    with pytest.raises(UsageError) as refused:
        form(f"{URL} {options}", tmp_path)
    assert says in str(refused.value)
    assert refused.value.hint
