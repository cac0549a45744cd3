"""How many users a rate of conversations stands for, and what probes are too short for."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from redline.asking.origins import FromRepository
from redline.asking.searching import read_servers_search
from redline.errors import UsageError
from redline.limits.answers import answer
from redline.limits.doubts import Seen
from redline.model import Histogram
from redline.model.limits import LimitAnswer
from redline.report.limit import answer_text
from redline.search import Evidence, Proposal, Search, Settings
from redline.search.evidence import ProbeSlice, RequestSeen
from redline.suite import parse_objectives
from tests.fakes import asks

GAPS = RequestSeen(1000, 1000, 0, Histogram.of([1_000_000] * 1000))
MESSAGES: Mapping[tuple[str | None, str], RequestSeen] = {(None, "gap"): GAPS}
"""What a probe of conversations has besides."""


def conversing(rate_per_s: float, messages: Mapping[tuple[str | None, str], RequestSeen]) -> Evidence:
    """A probe of a server whose conversations take 100 ms, and as much longer as there are users at once."""
    length_s = 0.1 / (1 - rate_per_s / 1000) if rate_per_s < 1000 else 9.0
    due = round(rate_per_s / 10)
    response = Histogram.of([round(length_s * 1e9)] * due)
    kept_up = due if rate_per_s < 1000 else due // 2
    return Evidence(rate_per_s, (ProbeSlice(0.1, due, kept_up, 0, response),) * 20, messages=messages)


def found(messages: Mapping[tuple[str | None, str], RequestSeen]) -> LimitAnswer:
    search = Search({"": parse_objectives("p50 < 200ms, errors < 1%")}, Settings(start_per_s=100, lowest_per_s=10))
    while isinstance(step := search.next(), Proposal):
        search.add(conversing(step.rate_per_s, messages))
    (limit,) = step.limits
    return answer(limit, search, Seen([]))


def test_users_are_the_rate_times_the_length_of_conversations() -> None:
    """They take 200 ms at 500/s: 100 are under way at once."""
    limit = found(MESSAGES)
    assert limit.passed_per_s is not None
    assert limit.passed_per_s == pytest.approx(500, rel=0.05)
    assert limit.passed_users is not None
    assert limit.failed_users is not None
    assert limit.passed_users == pytest.approx(100, rel=0.1)
    assert limit.failed_users >= limit.passed_users
    assert f"({limit.passed_users:.0f} users at once)" in answer_text(limit)


def test_other_requests_have_no_users() -> None:
    limit = found({})
    assert (limit.passed_users, limit.failed_users) == (None, None)
    assert "users" not in answer_text(limit)


def test_users_who_stay_longer_than_a_probe_are_refused(tmp_path: Path) -> None:
    asked = {"targets": ["ws://127.0.0.1:8099/ticks"], "objective": ["gap p99 < 1s"], "duration": "5s"}
    read_servers_search(asks.search(**asked, events="messages for 5s"), FromRepository(tmp_path))
    with pytest.raises(UsageError, match=r"users who stay for 6.00 s have not all joined when a probe ends"):
        read_servers_search(asks.search(**asked, events="messages for 6s"), FromRepository(tmp_path))
