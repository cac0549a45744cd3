"""An HTTP proxy in between: tunnels by CONNECT, their failures, and a password that is kept nowhere."""

import base64
from pathlib import Path

import pytest

from redline.model import Report
from redline.model.load_result import LoadResult
from redline.suite.urls import base_of
from tests.e2e.compared import compared
from tests.e2e.conftest import Redline, for_each
from tests.e2e.preloaded import HASTY
from tests.e2e.test_way_in import SHORT, haproxy
from tests.fakes import targets
from tests.fakes.certificates import Authority
from tests.fakes.proxies import proxy

pytestmark = pytest.mark.e2e

SHORT_SEARCH = ("--objective", "p99 < 1us", "-d", "1s", "--warmup", "100ms", "--start", "100", "--probes", "1")
"""No rate meets it."""
USER, PASSWORD = "me", "pa:ss w/ord"
WRITTEN = "http://me:pa%3Ass%20w%2Ford@"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize(
    ("flags", "backend"), [(("--http2",), "epoll"), (("-R", "200", "--requests-per-connection", "5"), "io_uring")]
)
def test_tls_and_both_versions_of_http_pass_a_tunnel(
    redline: Redline, tmp_path: Path, authority: Authority, flags: tuple[str, ...], backend: str
) -> None:
    port = targets.unused_port()
    bind = f"127.0.0.1:{port} ssl crt {authority.issue('server').both} alpn h2,http/1.1"
    # Only the proxy knows the name.
    redline.environment["XDG_CONFIG_HOME"] = str(tmp_path)
    with haproxy(tmp_path, bind), proxy() as between:
        url = f"https://shop.example:{port}/"
        given = ("--cacert", str(authority.file), "--sni", "localhost", "--target-is-mine", "shop.example")
        done = redline("load", url, *given, "-x", between.url, *SHORT, *flags, "--backend", backend, "--json")
    result = LoadResult.model_validate(done.json)
    assert result.counts.outcomes.ok > 0, done.err
    assert result.counts.outcomes.errors == 0, done.err
    assert result.addresses == (result.proxy,) == (f"127.0.0.1:{between.port}",)
    assert {*between.asked} == {f"shop.example:{port}"}
    assert result.tls is not None
    assert result.tls.alpn == ("h2" if flags == ("--http2",) else "http/1.1")


@pytest.mark.long
def test_a_comparison_goes_through_the_proxy_and_no_file_has_its_password(redline: Redline) -> None:
    with (
        targets.target(targets.healthy) as a,
        targets.target(targets.healthy) as b,
        proxy(f"{USER}:{PASSWORD}") as between,
    ):
        written = f"{WRITTEN}127.0.0.1:{between.port}"
        done = compared(redline, a, b, "--proxy", written, "--verbose", keep="out")
        load = redline("load", a, f"-x{written}", *SHORT, "-o", "load")
        in_environment = f"http://me:${{SHOP_PROXY}}@127.0.0.1:{between.port}"
        redline.environment["SHOP_PROXY"] = PASSWORD
        named = redline("load", a, "-x", in_environment, *SHORT, "-o", "named")
        limit = redline("limit", a, "-x", in_environment, *SHORT_SEARCH, "-o", "limit")
    report = Report.model_validate(done.json)
    assert all(cell.valid for cell in report.cells), done.err
    assert report.comparisons
    load.measured()
    named.measured()
    assert limit.code == 1, limit.err
    assert {*between.credentials} == {f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"}
    kept = {file: file.read_bytes() for file in redline.folder.rglob("*") if file.is_file()}
    assert any(str(between.port).encode() in content for content in kept.values())
    said = "".join(answer.out + answer.err for answer in (done, load, named, limit)).encode()
    for secret in (PASSWORD, "pa%3Ass", base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode().rstrip("=")[:-1]):
        assert secret.encode() not in said
        assert not [file for file, content in kept.items() if secret.encode() in content]


@pytest.mark.long
def test_a_proxy_that_opens_no_tunnel_is_named(redline: Redline) -> None:
    redline.environment[HASTY] = "1"
    with targets.target(targets.healthy) as url:
        with proxy(f"{USER}:{PASSWORD}") as between:
            wrong = f"http://me:wrongpassword@127.0.0.1:{between.port}"
            for command in (("load",), ("limit", "--objective", "p99 < 1s"), ("ab", url)):
                done = redline(*command, url, "--proxy", wrong)
                done.refused(1, "the proxy answered 407", "give a user and a password that the proxy takes")
                assert "wrongpassword" not in done.out + done.err
        with proxy() as between:
            nobody = targets.unused_port()
            redline("load", f"http://127.0.0.1:{nobody}/", "-x", between.url).refused(1, "the proxy answered 502")
        with targets.target(targets.garbage) as other:
            redline("load", url, "-x", base_of(other)).refused(1, "the proxy does not answer in HTTP")
        with targets.target(targets.stalls) as other:
            done = redline("load", url, "-x", base_of(other), "--timeout", "300ms")
            done.refused(1, "the proxy did not open the tunnel in time")
        nobody = targets.unused_port()
        redline("load", url, "-x", f"127.0.0.1:{nobody}").refused(1, f"nothing listens at the proxy 127.0.0.1:{nobody}")


def test_a_command_of_curl_names_a_proxy_and_its_password_becomes_a_variable(redline: Redline) -> None:
    with targets.target(targets.healthy) as url, proxy(f"{USER}:{PASSWORD}") as between:
        done = redline("init", "curl", "-x", between.url, "-U", f"{USER}:{PASSWORD}", "-p", url)
        assert done.code == 0, done.err
        assert "set it before you go on: REDLINE_PROXY_PASSWORD" in done.out
        assert PASSWORD not in (redline.folder / "redline.yaml").read_text()
        redline("load", *SHORT).refused(2, "the variable REDLINE_PROXY_PASSWORD is not set")
        redline.environment["REDLINE_PROXY_PASSWORD"] = PASSWORD
        redline("load", *SHORT).measured()


CANNOT_BE = (
    (("http://127.0.0.1:1/", "-x", "socks5://127.0.0.1:1080"), "a proxy of socks5:// is not supported"),
    (("http://127.0.0.1:1/", "-x", "http://me:secret@127.0.0.1"), "is not a proxy with its port"),
    (("http+unix://%2Fa/", "-x", "127.0.0.1:1"), "and not to a Unix socket"),
    (("http://127.0.0.1:1/", "-x", "127.0.0.1:1", "--addresses", "all"), "the proxy looks up the server's name"),
    (("http://h:1/", "-x", "127.0.0.1:1", "--resolve", "h:1:127.0.0.1,127.0.0.2"), "leads to one place"),
    (("http://127.0.0.1:1/", "-x", "http://me:${UNSET_X}@127.0.0.1:1"), "the variable UNSET_X is not set"),
    (("http://127.0.0.1:1/", "-x", "http://192.0.2.1:1"), "192.0.2.1 is another machine"),
)
COMMANDS = (("load",), ("limit", "--objective", "p99 < 1s"), ("ab", "http://127.0.0.1:1/"))


@pytest.mark.parametrize(("command", "args", "says"), for_each(COMMANDS, CANNOT_BE))
def test_a_proxy_that_cannot_be_is_refused(
    redline: Redline, command: tuple[str, ...], args: tuple[str, ...], says: str
) -> None:
    done = redline(command[0], *args[:1], *(args[:1] if command[0] == "ab" else command[1:]), *args[1:])
    done.refused(2, says)
    assert "secret" not in done.out + done.err
