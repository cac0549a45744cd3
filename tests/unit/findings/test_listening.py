"""Servers of a duet that were loaded by fewer users, because their listen queue is short."""

from types import SimpleNamespace
from typing import Any

import pytest

from redline.findings.listening import short_queue


@pytest.mark.parametrize(("users", "said"), [((None, None), None), ((None, 12), 12), ((40, 12, 30), 12)])
def test_the_fewest_users_of_a_start_are_said(users: tuple[int | None, ...], said: int | None) -> None:
    judged: Any = short_queue.function
    found = judged(SimpleNamespace(starts=[SimpleNamespace(users=one) for one in users]))
    if said is None:
        assert found is None
    else:
        assert found.message.startswith(f"{said} users loaded each server")
        assert short_queue.grade(found.value) == "warn"
