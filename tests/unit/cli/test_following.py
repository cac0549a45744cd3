"""Where --follow leads: to the same host, or the same Unix socket, and never out of TLS."""

import pytest
from rich.console import Console

from redline.cli import following
from redline.cli.following import _next
from redline.driving.checks import Checked
from redline.errors import UsageError
from redline.model import Cell
from tests.fakes import asks
from tests.fakes.checks import checked

SOCKET = "http+unix://%2Frun%2Fapp.sock"


@pytest.mark.parametrize(
    ("url", "location", "leads_to"),
    [
        ("http://127.0.0.1:8080/a/b", "c", "http://127.0.0.1:8080/a/c"),
        ("127.0.0.1:8080/?next=http://other/", "/login", "http://127.0.0.1:8080/login"),
        ("http://shop.example/", "https://SHOP.example/", "https://SHOP.example/"),
        ("http://127.0.0.1:8080/{rand:1..5}", "/items/{seq}", "http://127.0.0.1:8080/items/{{seq}}"),
        (f"{SOCKET}/a/b?c", "../login?to=/a", f"{SOCKET}/login?to=/a"),
        (f"{SOCKET}/", "http://localhost/login", f"{SOCKET}/login"),
        (SOCKET, "/login", f"{SOCKET}/login"),
    ],
)
def test_a_redirect_on_the_same_host_is_followed(url: str, location: str, leads_to: str) -> None:
    assert _next(url, location, 302, has_secrets=False) == leads_to


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("http://127.0.0.1:8080/", "//other.example/"),
        (f"{SOCKET}/", "http://127.0.0.1/"),
        (f"{SOCKET}/", "http://localhost:8080/"),
        (f"{SOCKET}/", "https://localhost/"),
    ],
)
def test_a_redirect_to_elsewhere_is_refused(url: str, location: str) -> None:
    with pytest.raises(UsageError, match=r"leads to another host \(302 to ") as caught:
        _next(url, location, 302, has_secrets=False)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("location", "signed_in", "leads_to", "refused"),
    [
        ("/b?x=1", (), "https://127.0.0.1:8443/b?x=1", ""),
        ("/b?x=1", ("Authorization: Basic x",), "https://127.0.0.1:8443/b?x=1", ""),
        ("https://127.0.0.1:9443/b", ("Accept: a/b",), "https://127.0.0.1:9443/b", ""),
        ("https://127.0.0.1:9443/b", ("Cookie: a=b",), "", "leads to another port, which would get the sign-in"),
        ("https://127.0.0.1:9443/b", ("X-Own: ${TOKEN}",), "", "leads to another port, which would get the sign-in"),
        ("http://127.0.0.1:8080/b", (), "", "leads to a URL without TLS"),
        ("https://other.example/b", (), "", "leads to another host"),
    ],
)
def test_redirects(
    monkeypatch: pytest.MonkeyPatch, location: str, signed_in: tuple[str, ...], leads_to: str, refused: str
) -> None:
    monkeypatch.setenv("TOKEN", "secret")

    def answer(cell: Cell) -> Checked:
        if not cell.scenario.request.path.startswith("/a"):
            return checked()
        return checked(status=302).model_copy(update={"headers": (("location", location),)})

    monkeypatch.setattr(following, "_answer_of", answer)
    flags = asks.load(url="https://127.0.0.1:8443/a", headers=[*signed_in], connections=1, duration="1s")
    if refused:
        with pytest.raises(UsageError, match=refused):
            following.followed(flags, Console(quiet=True))
    else:
        assert following.followed(flags, Console(quiet=True)).server == leads_to


def test_a_command_is_not_followed() -> None:
    with pytest.raises(UsageError, match=r"--follow: the server of `\./shop \{port\}` does not run yet"):
        following.followed(asks.load(url="./shop {port}"), Console(quiet=True))
