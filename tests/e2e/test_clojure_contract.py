"""Every server that adds two numbers, with its stacks, modes and settings: the contract in catalogue/README.md."""

from contextlib import closing
from http.client import HTTPConnection
from itertools import product
from pathlib import Path

import pytest

from redline.model import OptionValue, ServerEntry
from tests.e2e.workshop import Workshop, entries, started, variant_of

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.jvm]

PLUS = "/math/plus"
KEPT = 120
"""Requests on a single connection."""
UNMATCHED = {"study", "stream"}
"""Without its match in the request, reitit does not know that another method is allowed."""


def cases() -> list[object]:
    """Every server with all its stacks in all modes, and with all other settings."""
    made: list[object] = []
    for entry in entries().values():
        names = [name for name in ("stack", "mode") if name in entry.options]
        if "mode" not in names:
            continue
        tried: list[dict[str, OptionValue]] = [
            dict(zip(names, values, strict=True)) for values in product(*(entry.options[name].values for name in names))
        ]
        if tuning := entry.options.get("tuning"):
            tried += [{"tuning": value} for value in tuning.values if value != tuning.default]
        made += [pytest.param(entry, each, id="-".join((entry.name, *map(str, each.values())))) for each in tried]
    return made


def ask(client: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    client.request(method, path, headers=headers)
    answer = client.getresponse()
    return answer.status, answer.getheader("Content-Type") or "", answer.read()


@pytest.mark.parametrize(("entry", "options"), cases())
def test_it_adds_two_numbers(
    workshop: Workshop, tmp_path: Path, entry: ServerEntry, options: dict[str, OptionValue]
) -> None:
    variant = variant_of(entry, **options)
    with started(workshop, variant, tmp_path) as server:
        endpoint = server.endpoint
        with closing(HTTPConnection(endpoint.host, endpoint.port, timeout=20)) as client:
            sockets = set()
            for number in range(KEPT):
                typed = {"Content-Type": "application/text"} if number % 2 else {}
                status, kind, body = ask(client, f"{PLUS}?x={number}&y=-2", **typed)
                assert (status, body) == (200, b'{"total":%d}' % (number - 2))
                assert kind.replace(" ", "") == "application/json;charset=utf-8"
                sockets.add(client.sock)
            assert len(sockets) == 1, "it closes connections after some requests"
            for wrong in ("", "?x=1", "?x=1&y=two"):
                assert ask(client, PLUS + wrong)[0] == 400
            assert ask(client, "/math/minus?x=1&y=2")[0] == 404
            assert ask(client, f"{PLUS}?x=1&y=2", "DELETE")[0] == (
                404 if variant.options.get("tuning") in UNMATCHED else 405
            )
        assert PLUS not in server.log.read_text(), "nothing is logged for a request"
