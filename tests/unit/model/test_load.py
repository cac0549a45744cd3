"""What a load means for the time of a trial."""

import pytest

from redline.model import Closed, Load, Open

S = 1_000_000_000


@pytest.mark.parametrize(("load_s", "unloaded_ms"), [(0.1, 250), (2.5, 250), (2.6, 260), (19.9, 1990), (3600, 2000)])
def test_a_server_is_watched_without_load_for_a_tenth_of_its_time(load_s: float, unloaded_ms: int) -> None:
    load = Load(name="quiet", shape=Open(rate_per_s=10, connections=1), duration_ns=S)
    assert load.unloaded_ns(load_s * S) == unloaded_ms * 1_000_000


def test_a_server_that_its_users_saturate_is_not() -> None:
    load = Load(name="closed", shape=Closed(users=4), duration_ns=S)
    assert load.unloaded_ns(20 * S) == 0
    paced = load.model_copy(update={"shape": Closed(users=4, pace_per_s=1)})
    assert paced.unloaded_ns(20 * S) == 2 * S
