"""chronyc's report of a clock, and the error of a difference between two clocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.linux.host import parse_tracking
from redline.model import ClockReading, HostFacts, Role
from redline.model.hosts import one_way_bound_ns

# `chronyc -n -c tracking` of chrony 4.3 in a network namespace, following another chronyd.
FOLLOWS = (
    "0A000001,10.0.0.1,11,1790000000.123456789,-0.000001264,0.000000512,0.000002345,-1.234,0.005,0.321,"
    "0.000034861,0.000025112,2.0,Normal"
)
FREE = "7F7F0101,,10,1790000000.1,0.000000000,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,Normal"
ALONE = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised"


def reading(offset_ns: int = 0, delay_ns: int = 0, dispersion_ns: int = 0) -> ClockReading:
    return ClockReading(
        reference="10.0.0.1", stratum=2, offset_ns=offset_ns, root_delay_ns=delay_ns, root_dispersion_ns=dispersion_ns
    )


def host(role: Role, before: ClockReading | None, after: ClockReading | None) -> HostFacts:
    return HostFacts(name=role, role=role, address="10.0.0.2", clock_before=before, clock_after=after)


def test_a_clock_that_follows_another_has_a_bound() -> None:
    found = parse_tracking(FOLLOWS)
    assert found == ClockReading(
        reference="10.0.0.1", stratum=11, offset_ns=1264, root_delay_ns=34861, root_dispersion_ns=25112
    )
    assert found.bound_ns == 1264 + 25112 + 17431


def test_a_clock_of_its_own_is_its_own_reference() -> None:
    found = parse_tracking(FREE)
    assert found is not None
    assert (found.reference, found.bound_ns) == ("7F7F0101", 0)


@pytest.mark.parametrize(
    "line", ["", ALONE, "506 Cannot talk to daemon", FOLLOWS + ",more", FOLLOWS.replace("11,", "x,")]
)
def test_a_clock_that_follows_none_is_not_known(line: str) -> None:
    assert parse_tracking(line) is None


@given(st.text())
def test_any_text_is_a_reading_or_none(text: str) -> None:
    parse_tracking(text)


def test_the_error_of_a_difference_is_that_of_both_clocks() -> None:
    near, far = reading(10), reading(-30, 20, 5)
    hosts = (host("server", near, near), host("load", near, far), host("load", near, near))
    assert one_way_bound_ns(hosts) == 10 + 45
    assert one_way_bound_ns(()) == 0
    assert one_way_bound_ns((*hosts, host("load", near, None))) is None
    assert one_way_bound_ns(hosts[:1]) is None
