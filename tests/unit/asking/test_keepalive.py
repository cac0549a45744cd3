"""What --no-keepalive makes of the documents that `load`, `limit` and `ab` write."""

from pathlib import Path
from typing import Any

import pytest

from redline.asking.comparison import comparison_document
from redline.asking.load import load_document
from redline.asking.search import search_document
from redline.asking.written import plain
from redline.errors import UsageError
from tests.fakes import asks

URL = "http://127.0.0.1:1/"
MIX = "- {name: a, get: /a, headers: {connection: keep, X: y}}\n- {name: b, get: /b}\n"
JOURNEY = "journey:\n  once: [{post: /login}]\n  steps: [{get: /items, headers: {A: b}}]\n"


def ends(written: str) -> tuple[str, str]:
    return written, "the work tree"


def ab(**flags: Any) -> Any:
    return plain(comparison_document(asks.comparison(a=URL, b=URL, no_keepalive=True, **flags), ends, str))


def limit(**flags: Any) -> Any:
    return plain(search_document(asks.search(targets=[URL], no_keepalive=True, **flags), ends, str))


def load(**flags: Any) -> Any:
    return plain(load_document(asks.load(url=URL, no_keepalive=True, **flags), str))


@pytest.mark.parametrize("document", [ab, limit, load])
def test_every_command_closes_the_connection_of_each_request(document: Any) -> None:
    made = document(headers=["connection: close", "X: y"])
    assert [scenario["headers"] for scenario in made["scenarios"]] == [{"X": "y", "Connection": "close"}]
    ((_, loaded),) = made["loads"].items()
    (shape,) = (loaded[kind] for kind in ("open", "closed") if kind in loaded)
    assert shape["requests_per_connection"] == 1
    assert "for" not in loaded or isinstance(loaded["for"], str)


@pytest.mark.parametrize("document", [ab, limit, load])
def test_requests_of_lists_and_steps_of_journeys_close_too(document: Any, tmp_path: Path) -> None:
    (tmp_path / "mix.yaml").write_text(MIX)
    asked = document(requests=tmp_path / "mix.yaml")["scenarios"][-1]["requests"]
    assert [request["headers"] for request in asked] == [{"X": "y", "Connection": "close"}, {"Connection": "close"}]
    (tmp_path / "journey.yaml").write_text(JOURNEY)
    (scenario,) = document(requests=tmp_path / "journey.yaml")["scenarios"]
    assert scenario["journey"]["once"][0]["headers"] == {"Connection": "close"}
    assert scenario["journey"]["steps"][0]["headers"] == {"A": "b", "Connection": "close"}


@pytest.mark.parametrize("document", [ab, limit, load])
def test_http_2_has_no_such_header(document: Any) -> None:
    with pytest.raises(UsageError, match="--no-keepalive: HTTP/2 has no `Connection: close`"):
        document(http2=True)


@pytest.mark.parametrize("flags", [{"depth": 2}, {"requests_per_connection": 5}])
def test_several_requests_on_a_connection_are_refused_beside_it(flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="puts several requests on a connection"):
        load(**flags)


def test_what_a_revision_says_itself_is_not_changed() -> None:
    flags = asks.comparison(a="main", b=None, no_keepalive=True)
    with pytest.raises(UsageError, match=r"--no-keepalive: the redline.yaml of a revision says what is requested"):
        comparison_document(flags, ends, str)
