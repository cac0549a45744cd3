"""Which frames of two servers' stacks surely need more CPU time, with what they call."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from redline.model import FrameChange
from redline.stats.accounting import SampledServer, SampledStart
from redline.stats.frame_changes import frame_changes

COSTS = {"main;serve;parse": 500.0, "main;serve;write": 300.0, "main;idle": 199.5, "main;rare": 0.5}
SAMPLES = 4_000


def sampled(rng: np.random.Generator, costs: Mapping[str, float]) -> SampledServer:
    whole = sum(costs.values())
    drawn = rng.multinomial(SAMPLES, [cost / whole for cost in costs.values()])
    counted = Counter({stack: int(count) for stack, count in zip(costs, drawn, strict=True) if count})
    return SampledServer(whole * rng.normal(1.0, 0.002), counted)


def changes(seed: int, after: Mapping[str, float]) -> tuple[FrameChange, ...]:
    rng = np.random.default_rng(seed)
    return frame_changes(
        [SampledStart((sampled(rng, COSTS), sampled(rng, COSTS)), sampled(rng, after)) for _ in range(8)]
    )


def test_a_frame_has_the_cost_of_what_it_calls_and_stands_below_its_caller() -> None:
    frames = changes(1, COSTS | {"main;serve;parse": 600.0})
    assert [(frame.depth, frame.name) for frame in frames] == [
        *((0, ""), (1, "main"), (2, "serve"), (3, "parse"), (3, "write"), (2, "idle"))
    ]
    by_name = {frame.name: frame for frame in frames}
    below = by_name["parse"].after_ns + by_name["write"].after_ns
    assert by_name["serve"].after_ns == pytest.approx(below)
    assert abs(by_name["serve"].before_ns - 800.0) < 10.0


def test_what_grew_and_what_shrank_is_sure_in_its_callers_only_where_it_is_of_them_too() -> None:
    moved = COSTS | {"main;serve;parse": 600.0, "main;idle": 99.5}
    changed = {frame.name: frame.changed for frame in changes(2, moved)}
    assert (changed["parse"], changed["serve"], changed["idle"]) == ("grew", "grew", "shrank")
    assert (changed["write"], changed["main"]) == ("not sure", "not sure")


def test_a_frame_of_one_server_alone_is_there() -> None:
    before = changes(3, {stack: cost for stack, cost in COSTS.items() if stack != "main;idle"} | {"main;new": 199.5})
    by_name = {frame.name: frame for frame in before}
    assert (by_name["idle"].after_ns, by_name["new"].before_ns) == (0.0, 0.0)
    assert (by_name["idle"].changed, by_name["new"].changed) == ("shrank", "grew")


def test_of_equal_servers_a_frame_is_sure_in_at_most_one_of_twenty_comparisons() -> None:
    wrong = sum(any(frame.changed != "not sure" for frame in changes(seed, COSTS)) for seed in range(200))
    assert wrong <= 16, "10 of 200 are expected at most"
