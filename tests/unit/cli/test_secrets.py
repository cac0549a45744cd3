"""Secrets of flags and of the environment: kept in memory, and shown nowhere."""

import pytest

from redline.driving import secrets
from redline.driving.headers import headers_of, secrets_of
from redline.driving.secrets import secrets_of_the_lab
from redline.errors import UsageError, WrongValueError
from redline.model import Request
from redline.model.sign_in import AwsSignIn, BasicSignIn, SignIn
from redline.schema.places import read_proxy


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_held", {})
    monkeypatch.setattr(secrets, "_shown", {})


def test_two_secrets_of_one_name_are_both_kept() -> None:
    references = [secrets.hold("PASSWORD", value) for value in ("one", "two", "one")]
    assert references == ["${PASSWORD}", "${PASSWORD_2}", "${PASSWORD}"]
    assert [secrets.with_secrets(text, "it") for text in references] == ["one", "two", "one"]


def test_a_reference_is_a_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", "a${PASSWORD}")
    assert secrets.with_secrets("x${SHOP}y", "it") == "xa${PASSWORD}y"
    with pytest.raises(UsageError, match="the proxy: the variable NOT_SET_HERE is not set"):
        secrets.with_secrets("${NOT_SET_HERE}", "the proxy")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-x", "http://u:p@h:1"], ["-x", "http://u:***@h:1"]),
        (["-xhttp://u:p@h:1"], ["-xhttp://u:***@h:1"]),
        (["--proxy=http://u:p@h:1"], ["--proxy=http://u:***@h:1"]),
        (["load", "p", "http://h:1/p"], ["load", "p", "http://h:1/p"]),
    ],
)
def test_a_command_line_is_shown_without_them(words: list[str], shown: list[str]) -> None:
    secrets.hide("http://u:p@h:1", "http://u:***@h:1")
    assert secrets.masked(words) == shown
    assert secrets.masked_call("load(proxy='http://u:p@h:1')") == "load(proxy='http://u:***@h:1')"


@pytest.mark.parametrize(
    ("text", "host", "port", "user"),
    [
        ("http://127.0.0.1:3128", "127.0.0.1", 3128, ""),
        ("proxy.example:1/", "proxy.example", 1, ""),
        ("HTTP://me%40x:${P}@[::1]:8080", "::1", 8080, "me@x"),
    ],
)
def test_a_proxy_is_read(text: str, host: str, port: int, user: str) -> None:
    proxy = read_proxy(text)
    assert (proxy.host, proxy.port, proxy.user, proxy.password) == (host, port, user, "${P}" if user else "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("socks5://h:1", "a proxy of socks5:// is not supported"),
        ("http://h", "`http://h` is not a proxy with its port"),
        ("http://me:hidden@h:70000", "`http://h:70000` is not a proxy with its port"),
        ("http://me:hidden@h:1", "a password would be stored with the suite"),
        ("http://a%3Ab:${P}@h:1", "the user `a:b` has a colon"),
    ],
)
def test_a_proxy_that_cannot_be_is_refused_without_its_password(text: str, says: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        read_proxy(text)
    assert says in caught.value.message
    assert "hidden" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "auth",
    [
        BasicSignIn(user="${WHO}", password="${WORD}"),
        AwsSignIn(region="r", service="s", key="${WHO}", secret="${WORD}", session="${MORE}"),
    ],
)
def test_another_host_gets_the_secrets_of_headers_and_of_the_sign_in(
    auth: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"TOKEN": "t", "WHO": "w", "WORD": "p"} | ({"MORE": "m"} if isinstance(auth, AwsSignIn) else {})
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    asked = Request(headers={"X-Key": "k ${TOKEN}"}, auth=auth)
    assert secrets_of(asked) == named
    for name in named:
        monkeypatch.delenv(name)
    with secrets_of_the_lab(named):
        assert headers_of(asked, "localhost")
