"""URLs as users write them: how they are read, and the single error for an invalid URL."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.asking.requests import check_targets_are_whole
from redline.cli.command_line import app
from redline.errors import UsageError
from redline.model import AttachedServer
from redline.ports import Endpoint
from redline.suite.urls import as_url, is_like_a_url, is_secure, is_url, read_url


@pytest.fixture(autouse=True)
def _interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth0"), (3, "my net")])


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://h", "h", 80, "/"),
        ("https://h/x?y", "h", 443, "/x?y"),
        ("HTTP://H:1/x", "H", 1, "/x"),
        ("h:1", "h", 1, "/"),
        ("//h:1/x", "h", 1, "/x"),
        (" http://h/ ", "h", 80, "/"),
        ("localhost:8080//x", "localhost", 8080, "//x"),
        ("example.com/a//b", "example.com", 80, "/a//b"),
        ("h/?next=http://other/", "h", 80, "/?next=http://other/"),
        ("h?u=//x", "h", 80, "/?u=//x"),
        ("http://h/a#part", "h", 80, "/a"),
        ("http://h#part", "h", 80, "/"),
        ("http://h/@x:y", "h", 80, "/@x:y"),
        ("http://h/a b/ü", "h", 80, "/a%20b/%C3%BC"),
        ("http://h:/", "h", 80, "/"),
        ("http://[::1]:8443/x", "::1", 8443, "/x"),
        ("[::1]:1", "::1", 1, "/"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", 80, "/"),
        ("http://[fe80::1%25eth0]:1/", "fe80::1%eth0", 1, "/"),
        ("http://[fe80::1%eth0]:1/", "fe80::1%eth0", 1, "/"),
        ("http://[fe80::1%252]:1/", "fe80::1%2", 1, "/"),
        ("http://[fe80::1%2]:1/", "fe80::1%2", 1, "/"),
        ("http://[::1%25lo]:1/", "::1", 1, "/"),
    ],
)
def test_what_is_read(url: str, host: str, port: int, path: str) -> None:
    assert read_url(url) == (AttachedServer(host=host, port=port), path)
    assert is_secure(url) == url.startswith("https:")


@pytest.mark.parametrize(
    ("url", "says", "hint"),
    [
        ("", "the URL is empty", "write it like http://"),
        ("  ", "the URL is empty", "write it like http://"),
        ("unix:/run/a.sock", "names a Unix socket", "http+unix://%2Frun%2Fa.sock/"),
        ("UNIX:///run/a.sock", "names a Unix socket", "--unix-socket /run/a.sock"),
        ("site.har", "site.har is a recording of a browser, not a server", "--requests site.har"),
        (":8080", ":8080 is a port without a host", "write http://127.0.0.1:8080/"),
        ("8080/items", "8080/items is a port without a host", "write http://127.0.0.1:8080/items"),
        ("./shop --port {port}", "is not a URL; is it a command?", "`redline init './shop --port {port}'` writes"),
        ("node shop.js", "is not a URL; is it a command?", "`redline init 'node shop.js'` writes"),
        ("http://", "no host to connect to", "write it like http://"),
        ("http://:80/", "no host to connect to", "write it like http://"),
        ("http:/h:1/", "`//` is missing after `http:`", "write http://h:1/"),
        ("HTTPS:h", "`//` is missing after `HTTPS:`", "write https://h"),
        ("http:", "`//` is missing after `http:`", "write it like http://"),
        ("ftp://h/", "cannot load ftp://", "use http:// or https://"),
        ("http://h:0/", "there is no port 0", "1 to 65535"),
        ("http://h:65536/", "there is no port 65536", "1 to 65535"),
        (f"http://h:{'9' * 5000}/", "there is no port 99999", "1 to 65535"),
        ("http://h:x/", "`x` is not a port", "1 to 65535"),
        ("http://h:-1/", "`-1` is not a port", "1 to 65535"),
        ("http://h:\uff18/", "`\uff18` is not a port", "1 to 65535"),
        ("http://h:1:2/", "`h:1:2` is not a host with a port", "write it like http://"),
        ("http://me@h/", "the URL of h holds a user, which", "-H 'Authorization"),
        ("http://me:secret@h:1/", "the URL of h:1 holds a user and a password", "-H 'Authorization"),
        ("http://h\\x/", "a backslash", "write it like http://"),
        ("http://h/{rand:1-100}", "`{rand:1-100}` cannot be filled in", "{rand:1..100}"),
        ("http://a b/", "`a b` is not a host name", "use letters"),
        ("http://a..b/", "`a..b` is not a host name", "use letters"),
        ("http://%31/", "`%31` is not a host name", "use letters"),
        (f"http://{'a' * 64}.b/", "is not a host name", "use letters"),
        (f"http://{'a.' * 127}abc/", "is not a host name", "use letters"),
        ("http://bücher.example/", "`bücher.example` is not a host name", "xn--bcher-kva.example"),
        (f"http://ü{'a' * 70}/", "is not a host name", "Punycode"),
        ("http://[::1/", "`[::1` is not a host with a port", "write it like http://"),
        ("http://[::1]x/", "`[::1]x` is not a host with a port", "write it like http://"),
        ("http://[zz]/", "`zz` is not an IPv6 address", "http://[::1]:8080/"),
        ("http://[]/", "`` is not an IPv6 address", "http://[::1]:8080/"),
        ("http://[zz%25eth0]/", "`zz` is not an IPv6 address", "http://[::1]:8080/"),
        ("::1", "needs brackets", "http://[::1]:8080/"),
        ("http://::1:8080/", "needs brackets", "http://[::1]:8080/"),
        ("http://fe80::1%eth0/", "needs brackets", "http://[::1]:8080/"),
        ("http://[fe80::1]/", "needs the name of a network interface", "this machine has lo, eth0, my net"),
        ("http://[fe80::1%25]/", "needs the name of a network interface", "this machine has lo, eth0"),
        ("http://[fe80::1%]/", "needs the name of a network interface", "this machine has lo, eth0"),
        ("http://[fe80::1%25eth1]/", "there is no network interface `eth1`", "this machine has lo, eth0, my net"),
        ("http://[fe80::1%259]/", "there is no network interface `9`", "this machine has lo, eth0, my net"),
    ],
)
def test_what_cannot_be_reached_is_one_message(url: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_url(url)
    assert says in caught.value.message
    assert hint in caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_zone_is_decoded() -> None:
    assert read_url("http://[fe80::1%25my%20net]/")[0].host == "fe80::1%my net"


@pytest.mark.parametrize(
    ("text", "whole", "half"),
    [
        ("http://h", True, False),
        ("HTTPS://h", True, False),
        ("ftp://h/x", False, True),
        ("h:80", False, True),
        ("localhost/x", False, True),
        ("suite.yaml", False, False),
        ("./server --listen 127.0.0.1:80", False, False),
        ("python3 app.py --listen 127.0.0.1:80", False, False),
    ],
)
def test_what_looks_like_a_url(text: str, whole: bool, half: bool) -> None:
    assert (is_url(text), is_like_a_url(text)) == (whole, half)


@pytest.mark.parametrize("args", [["limit", "h:80"], ["ab", "h:80", "./b {port}"], ["ab", "http://h/", "ftp://h:80"]])
def test_half_a_url_gets_the_whole_one_as_a_hint(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raised = CliRunner().invoke(app, args).exception
    assert isinstance(raised, UsageError)
    assert raised.hint == f"try {as_url('h:80')}" == "try http://h:80"


def test_a_command_may_end_with_the_name_of_a_har_file() -> None:
    check_targets_are_whole(["./server --port {port} --replay day.har"])


@pytest.mark.parametrize(
    "args", [["load"], ["limit", "--objective", "p99 < 1s"], ["ab", "http://127.0.0.1:1/"]], ids=lambda args: args[0]
)
def test_every_command_reads_them_alike(args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for url, says in (
        ("HTTP://h:0/", "no port 0"),
        ("http://[fe80::1%25eth0]/", "fe80::1%eth0 is another machine"),
        ("unix:/run/a.sock", "names a Unix socket"),
        ("site.har", "a recording of a browser"),
    ):
        raised = CliRunner().invoke(app, [*args, url]).exception
        assert isinstance(raised, UsageError)
        assert says in raised.message


def test_an_address_is_written_as_in_urls() -> None:
    assert str(Endpoint("::1", 80)) == "[::1]:80"
    assert str(Endpoint("127.0.0.1", 80)) == "127.0.0.1:80"
