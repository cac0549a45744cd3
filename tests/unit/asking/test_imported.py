"""What a command says of a file of requests."""

from pathlib import Path

from redline.asking.imported import summary, times_summary
from redline.suite.imported import Arrival, Imported


def test_a_single_request_is_one() -> None:
    made = Imported("access log", [{"name": "a", "get": "/a"}], [1], [], "", (), (Arrival(0, 0),), False)
    assert summary(made, Path("access.log"), ()) == "1 request from access.log"
    assert times_summary(made) == "1 request in 0 ns"
