"""A hint never names a log that is gone by the time it is read."""

import pytest

from redline.cli.passing_log import passing_log
from redline.errors import DriveError


def test_a_hint_does_not_name_the_log() -> None:
    with pytest.raises(DriveError) as raised, passing_log() as log:
        raise DriveError("the engine ended: its last words", hint=f"its messages are in {log}")
    assert not log.exists()
    assert str(log) not in str(raised.value)
    assert "its last words" in str(raised.value)
    assert "see whether the server still runs" in raised.value.hint


def test_other_hints_stay() -> None:
    with pytest.raises(DriveError) as raised, passing_log():
        raise DriveError("there is no engine", hint="make build")
    assert raised.value.hint == "make build"
