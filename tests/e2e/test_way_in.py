"""The ways to a server: Unix sockets, other places than the URL says, certificates of the client, versions of TLS."""

import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.model import Report
from redline.model.load_result import LoadResult
from tests.e2e.compared import compared
from tests.e2e.conftest import Redline
from tests.e2e.test_documented_commands import WAYS
from tests.fakes import targets
from tests.fakes.certificates import Authority
from tests.fakes.proxies import proxy
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

SHORT = ("-c", "4", "-d", "300ms", "--warmup", "100ms")
HAPROXY = """\
global
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend all
  {binds}
  http-request return status 200 content-type text/plain lf-string "%[req.hdr(host)] %[ssl_fc_sni] %[src]"
"""


@contextmanager
def haproxy(folder: Path, *binds: str) -> Iterator[None]:
    """HAProxy, which answers with the host, the name in SNI, and the address of the client."""
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed")
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(binds="\n  ".join(f"bind {bind}" for bind in binds)))
    with subprocess.Popen(["haproxy", "-db", "-f", config], stderr=subprocess.PIPE, text=True) as server:
        try:
            listens = eventually(lambda: server.poll() is not None or all(map(_accepts, binds)))
            assert server.poll() is None, server.communicate()[1]
            assert listens
            yield
        finally:
            server.kill()


def _accepts(bind: str) -> bool:
    """Whether something listens at `unix@PATH` or `HOST:PORT ssl …`."""
    path = bind.partition("unix@")[2]
    host, _, port = bind.split(maxsplit=1)[0].partition(":")
    with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as asking:
        return asking.connect_ex(path or (host, int(port))) == 0


def loaded(redline: Redline, *args: str) -> LoadResult:
    """The result of a load, all of whose requests were answered rightly."""
    done = redline("load", *args, *SHORT, "--json")
    result = LoadResult.model_validate(done.json)
    assert result.counts.outcomes.ok > 0, done.err
    assert result.counts.outcomes.errors == 0, done.err
    return result


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("backend", [pytest.param("epoll", marks=pytest.mark.long), "io_uring"])
def test_a_unix_socket_is_loaded(redline: Redline, tmp_path: Path, backend: str) -> None:
    with haproxy(tmp_path, f"unix@{tmp_path}/app.sock"):
        url = f"http+unix://{str(tmp_path).replace('/', '%2F')}%2Fapp.sock/items"
        result = loaded(redline, url, "--backend", backend)
        named = loaded(redline, "http://app.example/", "--unix-socket", f"{tmp_path}/app.sock", "--backend", backend)
    assert result.addresses == named.addresses == (f"unix:{tmp_path}/app.sock",)


@pytest.mark.long
def test_two_unix_sockets_are_compared(redline: Redline, tmp_path: Path) -> None:
    urls = [f"http+unix://{str(tmp_path).replace('/', '%2F')}%2F{name}.sock/" for name in "ab"]
    with haproxy(tmp_path, *(f"unix@{tmp_path}/{name}.sock" for name in "ab")):
        done = compared(redline, *urls, "--load", "closed:4")
    report = Report.model_validate(done.json)
    assert all(cell.valid for cell in report.cells), done.err
    assert report.comparisons


def test_a_socket_without_a_server_is_named(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "file.sock").touch()
    for path, code, says in (("none.sock", 1, "nothing can be reached at {}"), ("file.sock", 2, "{} is a file, not a")):
        done = redline("load", "http://localhost/", "--unix-socket", str(tmp_path / path), *SHORT)
        done.refused(code, says.format(tmp_path / path))


def test_connections_go_where_flags_say_and_the_name_stays(redline: Redline, tmp_path: Path) -> None:
    port = targets.unused_port()
    with haproxy(tmp_path, f"127.0.0.1:{port}", f"127.0.0.2:{port}"):
        moved = loaded(redline, "http://app.example/", "--connect-to", f"app.example:80:127.0.0.1:{port}")
        url, resolve = f"http://app.example:{port}/", f"app.example:{port}:127.0.0.1,127.0.0.2"
        first = loaded(redline, url, "--resolve", resolve)
        every = loaded(redline, url, "--resolve", resolve, "--addresses", "all", "--source", "127.0.0.9")
        dead = redline("load", url, "--resolve", f"{resolve},127.0.0.3", "--addresses", "all", *SHORT)
    assert moved.addresses == first.addresses == (f"127.0.0.1:{port}",)
    assert every.addresses == (f"127.0.0.1:{port}", f"127.0.0.2:{port}")
    dead.refused(1, f"GET / at 127.0.0.3:{port}: connect: Connection refused")
    assert "leave that address out" in dead.err


def test_a_certificate_of_the_client_is_shown_to_a_server_that_wants_it(
    redline: Redline, tmp_path: Path, authority: Authority
) -> None:
    port = targets.unused_port()
    server, client = authority.issue("server"), authority.issue("client")
    trust = ("--cacert", str(authority.file))
    bind = f"127.0.0.1:{port} ssl crt {server.both} ca-file {authority.file} verify required"
    url = f"https://localhost:{port}/"
    with haproxy(tmp_path, bind):
        one = loaded(redline, url, *trust, "--cert", str(client.certificate), "--key", str(client.key))
        both = loaded(redline, url, *trust, "--cert", str(client.both), "--tls-max", "1.2", "--no-session-resumption")
        redline("load", url, *trust, *SHORT).refused(1, "it wants a certificate of the client")
        stranger = Authority(tmp_path).issue("stranger")
        done = redline("load", url, *trust, *SHORT, "--cert", str(stranger.both))
        done.refused(1, "it does not trust who signed the certificate of the client")
    assert one.tls is not None
    assert both.tls is not None
    assert (one.tls.version, both.tls.version) == ("1.3", "1.2")


def test_no_recording_holds_the_key(redline: Redline, tmp_path: Path, authority: Authority) -> None:
    port = targets.unused_port()
    server, client = authority.issue("server"), authority.issue("client")
    with haproxy(tmp_path, f"127.0.0.1:{port} ssl crt {server.both} ca-file {authority.file} verify required"):
        given = ("--cacert", str(authority.file), "--cert", str(client.both), "-o", "out")
        redline("load", f"https://localhost:{port}/", *given, *SHORT)
    secret = client.key.read_text().splitlines()[1]
    kept = [file.read_bytes() for file in (redline.folder / "out").rglob("*") if file.is_file()]
    assert kept
    assert not any(secret.encode() in content for content in kept)
    assert any(str(client.both).encode() in content for content in kept)


def test_a_certificate_that_cannot_be_used_is_one_message(
    redline: Redline, tmp_path: Path, authority: Authority
) -> None:
    client, other = authority.issue("client"), authority.issue("other")
    encrypted = tmp_path / "encrypted.key"
    password = ("-aes256", "-passout", "pass:secret")
    subprocess.run(["openssl", "pkey", "-in", client.key, *password, "-out", encrypted], check=True)
    url = "https://127.0.0.1:1/"
    for key, says in ((other.key, "is not the key of the certificate"), (encrypted, "encrypted with a password")):
        done = redline("load", url, "--insecure", "--cert", str(client.certificate), "--key", str(key))
        done.refused(2, says)
    redline("load", url, "--insecure", "--cert", str(client.certificate)).refused(2, "no private key")
    redline("load", url, "--insecure", "--cert", str(client.key)).refused(2, "contains no certificate")
    redline("load", url, "--key", str(client.key)).refused(2, "a key without its certificate")
    expired = authority.issue("expired", days=-1)
    done = redline("load", url, "--insecure", "--cert", str(expired.both))
    done.refused(1, "the certificate has expired")


def test_names_versions_and_suites_are_as_flags_say(redline: Redline, tmp_path: Path, authority: Authority) -> None:
    port = targets.unused_port()
    server = authority.issue("server")
    with haproxy(tmp_path, f"127.0.0.1:{port} ssl crt {server.both}"):
        url, trust = f"https://127.0.0.1:{port}/", ("--cacert", str(authority.file), "--sni", "localhost")
        suite = loaded(redline, url, *trust, "--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384")
        newest = loaded(redline, url, *trust, "--tls-min", "1.3", "--ciphers", "TLS_CHACHA20_POLY1305_SHA256")
        done = redline("load", url, *trust, *SHORT, "--ciphers", "AES128-SHA")
        done.refused(2, "`AES128-SHA` is not a cipher suite that the engine has")
    assert suite.tls is not None
    assert newest.tls is not None
    assert suite.tls.cipher.endswith("ECDSA_WITH_AES_256_GCM_SHA384")
    assert newest.tls.cipher.endswith("CHACHA20_POLY1305_SHA256")


def test_the_other_scheme_a_redirect_and_a_stream_are_named_before_the_load(
    redline: Redline, tmp_path: Path, authority: Authority
) -> None:
    port, plain = targets.unused_port(), targets.unused_port()
    server = authority.issue("server")
    with haproxy(tmp_path, f"127.0.0.1:{port} ssl crt {server.both}", f"127.0.0.1:{plain}"):
        redline("load", f"http://127.0.0.1:{port}/").refused(1, "this port speaks TLS: write https://")
        redline("load", f"https://127.0.0.1:{plain}/").refused(1, "speaks HTTP without TLS: write http://")

    def redirects(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")

    def sets_cookies(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=1; Path=/\r\nContent-Length: 0\r\n\r\n")

    with targets.target(redirects) as url:
        redline("load", url).refused(1, "status 302 to /login in place of 200", "ask for /login")
    with targets.target(targets.trickles) as url:
        redline("load", url, "--timeout", "1s").refused(1, "it began and did not end")
    with targets.target(sets_cookies) as url:
        done = redline("load", url, *SHORT)
    assert "the answers set cookies (sid), which no request sends back" in done.err


@pytest.mark.long
def test_no_keepalive_is_a_connection_for_each_request(redline: Redline) -> None:
    asked: list[bytes] = []

    def closes(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(targets.ANSWER)

    (redline.folder / "list.yaml").write_text("- get: /a\n- {get: /b, headers: {Accept: text/plain}}\n")
    for given in ((), ("--requests", "list.yaml")):
        asked.clear()
        with targets.target(closes) as url:
            result = loaded(redline, url.rpartition("/")[0], "--no-keepalive", *given)
        requests = [request for request in asked if request]  # a connection may be open when the load ends
        assert all(b"\r\nConnection: close\r\n" in request for request in requests)
        assert len(requests) > result.counts.outcomes.ok
    asked.clear()
    with targets.target(closes) as url, targets.target(closes) as other:
        redline("ab", url, other, "--no-keepalive", "--for", "4s", "--load", "closed:2")
    requests = [request for request in asked if request]
    assert len(requests) > 100
    assert all(b"\r\nConnection: close\r\n" in request for request in requests)
    redline("load", url, "--no-keepalive", "--http2").refused(2, "HTTP/2 has no `Connection: close`")


def test_redirects_are_followed_once_if_asked(redline: Redline) -> None:
    asked: list[bytes] = []

    def redirects(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            asked.append(request)
            to = {b"/": b"/a", b"/a": b"b?x=1", b"/away": b"http://other.example/"}.get(request.split()[1])
            head = b"302 Found\r\nLocation: %b" % to if to else b"200 OK"
            connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % head)

    with targets.target(redirects) as url:
        base = url.rpartition("/")[0]
        done = redline("load", f"{base}/", "--follow", *SHORT, "--json")
        redline("load", f"{base}/away", "--follow").refused(2, "leads to another host (302 to http://other.example/)")
        redline("load", f"{base}/", "--follow", "-X", "POST").refused(2, "not for POST")
    assert LoadResult.model_validate(done.json).counts.outcomes.errors == 0
    assert f"302: {base}/a leads to {base}/b?x=1" in done.err
    assert sum(request.startswith(b"GET / ") for request in asked) == 1


def test_a_command_of_curl_says_the_way_too(redline: Redline, tmp_path: Path, authority: Authority) -> None:
    port = targets.unused_port()
    server, client = authority.issue("server"), authority.issue("client")
    for name, file in {"ca.pem": authority.file, "c.pem": client.certificate, "c.key": client.key}.items():
        (redline.folder / name).write_text(file.read_text())
    tls = f"ssl crt {server.both} ca-file {authority.file} verify required"
    curl = "--cacert ca.pem --cert c.pem --key c.key --tlsv1.2 --tls-max 1.2 -H X-One:1 https://shop.example/items"
    with haproxy(tmp_path, f"127.0.0.1:{port} {tls}"):
        moved = ("--connect-to", f"shop.example:443:127.0.0.1:{port}")
        done = redline("init", "curl", *moved, *curl.split())
        assert done.code == 0, done.err
        result = loaded(redline)
    assert result.tls is not None
    assert (result.tls.version, result.addresses) == ("1.2", (f"127.0.0.1:{port}",))


@pytest.mark.long
def test_the_documented_commands_work(redline: Redline, tmp_path: Path, authority: Authority) -> None:
    port, plain = targets.unused_port(), targets.unused_port()
    server, client = authority.issue("server"), authority.issue("client")
    for name, file in {"ca.pem": authority.file, "client.pem": client.certificate, "client.key": client.key}.items():
        (redline.folder / name).write_text(file.read_text())
    redline.environment["SSL_CERT_FILE"] = str(authority.file)
    meant = {
        "%2Frun%2Fapp.sock": f"{tmp_path}/app.sock".replace("/", "%2F"),
        "/run/app.sock": f"{tmp_path}/app.sock",
        "shop.example:443:127.0.0.1:8443": f"shop.example:443:127.0.0.1:{port}",
        "shop.example:443:10.0.0.7,10.0.0.8": f"shop.example:{port}:127.0.0.1,127.0.0.2",
        ":8443/": f":{port}/",
        "http://127.0.0.1:8080/": f"http://127.0.0.1:{plain}/",
    }
    tls = f"ssl crt {server.both} ca-file {authority.file} verify optional"
    binds = (f"127.0.0.1:{port} {tls}", f"127.0.0.2:{port} {tls}", f"127.0.0.1:{plain}", f"unix@{tmp_path}/app.sock")
    with haproxy(tmp_path, *binds), proxy() as between:
        meant["http://127.0.0.1:3128"] = between.url
        for command in WAYS:
            text = command if "--resolve" not in command else command.replace("example/", f"example:{port}/")
            for shown, real in meant.items():
                text = text.replace(shown, real)
            program, *args = shlex.split(text)
            assert program == "load"
            loaded(redline, *args)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("http://h/", "--connect-to", "other:80:127.0.0.1:1"), "fits no server here"),
        (("http://h/", "--connect-to", "nonsense"), "write HOST1:PORT1:HOST2:PORT2"),
        (("http://h/", "--resolve", "h:81:127.0.0.1"), "fits no server here"),
        (("http://h/", "--resolve", "h"), "write HOST:PORT:ADDRESS"),
        (("http://h/", "--unix-socket", "/a", "--resolve", "h:80:127.0.0.1"), "--resolve names another place"),
        (("http://h/", "--unix-socket", f"/{'a' * 120}"), "too long for a Unix socket"),
        (("http+unix://%2Fa/", "--source", "127.0.0.2"), "a Unix socket has no addresses"),
        (("http://127.0.0.1/", "--source", "nowhere"), "`nowhere` is not an address"),
        (("https://127.0.0.1/", "--tls-min", "1.3", "--tls-max", "1.2"), "no version is left"),
        (("https://127.0.0.1/", "--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"), "one of TLS 1.3, which may be negotiated"),
        (("http://127.0.0.1/", "--interface", "lo"), "use `--source ADDRESS`"),
        (("http://127.0.0.1/", "--sni", "a"), "--sni means nothing without TLS"),
    ],
)
def test_a_way_that_cannot_be_is_refused(redline: Redline, args: tuple[str, ...], says: str) -> None:
    redline("load", *args).refused(2, says)
