"""Redirects are followed on the same host, and never out of TLS."""

import pytest
from rich.console import Console

from redline.cli import following
from redline.cli.command_line import LoadFlags
from redline.errors import UsageError
from redline.model import Cell
from redline.plugins.checks import Checked
from tests.fakes.checks import checked


@pytest.mark.parametrize(
    ("location", "leads_to", "refused"),
    [
        ("/b?x=1", "https://127.0.0.1:8443/b?x=1", ""),
        ("https://127.0.0.1:9443/b", "https://127.0.0.1:9443/b", ""),
        ("http://127.0.0.1:8080/b", "", "leads to a URL without TLS"),
        ("https://other.example/b", "", "leads to another host"),
    ],
)
def test_redirects(monkeypatch: pytest.MonkeyPatch, location: str, leads_to: str, refused: str) -> None:
    def answer(cell: Cell) -> Checked:
        if not cell.scenario.request.path.startswith("/a"):
            return checked()
        return checked(status=302).model_copy(update={"headers": (("location", location),)})

    monkeypatch.setattr(following, "_asked", answer)
    flags = LoadFlags(url="https://127.0.0.1:8443/a", connections=1, duration="1s")
    if refused:
        with pytest.raises(UsageError, match=refused):
            following.followed(flags, Console(quiet=True))
    else:
        assert following.followed(flags, Console(quiet=True)).url == leads_to
