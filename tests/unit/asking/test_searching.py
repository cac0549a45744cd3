"""What a search is asked for: where it begins."""

from types import SimpleNamespace

import pytest

from redline.asking.searching import _start_per_s
from redline.errors import UsageError
from tests.fakes.recordings import STEADY

SHORT, LONG = STEADY.lasting(1_000_000_000), STEADY.lasting(10_000_000_000)


@pytest.mark.parametrize(("start", "loads"), [("100", [SHORT, LONG]), ("10", [LONG])])
def test_a_search_begins_at_a_rate_whose_probes_show_something(start: str, loads: list[object]) -> None:
    assert _start_per_s(SimpleNamespace(start=start), loads) == float(start)  # type: ignore[arg-type]


def test_a_rate_that_is_too_low_for_its_probes_is_refused_with_their_length() -> None:
    with pytest.raises(UsageError) as raised:
        _start_per_s(SimpleNamespace(start="15"), [LONG, SHORT])  # type: ignore[arg-type]
    assert raised.value.message == "--start 15: the lowest rate of probes of 1.00 s is 100/s"
    assert raised.value.hint == "give longer probes (-d 7s), or begin at --start 100"
