"""An engine that ended without a result is reported, with observations and with the causes that were checked."""

from pathlib import Path

import pytest

from redline.driving.ending import EngineEnding
from redline.linux import procfs


@pytest.mark.parametrize(
    ("ended", "says", "hints"),
    [
        (EngineEnding(-9, "it said nothing"), "the engine was killed (signal 9, SIGKILL)", "is not known"),
        (EngineEnding(-9, "x", memory_kills=0), "the engine was killed (signal 9, SIGKILL)", "counted no kill"),
        (
            EngineEnding(-9, "x", memory_kills=1),
            "the engine was killed (signal 9, SIGKILL)",
            "lack of memory meanwhile: see",
        ),
        (EngineEnding(-9, "x", overdue=True), "the engine did not end by its deadline", "was suspended"),
        (EngineEnding(-11, "x"), "the engine was killed (signal 11, SIGSEGV)", "fault of the engine"),
        (EngineEnding(-99, "x"), "the engine was killed (signal 99, not a known signal)", "who sent"),
        (EngineEnding(-15, "x"), "the engine was killed (signal 15, SIGTERM)", "who sent"),
        (
            EngineEnding(101, "panicked"),
            "the engine ended with code 101 and no result: panicked",
            "fault of the engine",
        ),
    ],
)
def test_an_ending_has_what_was_seen_and_what_was_checked(ended: EngineEnding, says: str, hints: str) -> None:
    assert str(ended).startswith(says)
    assert str(ended).endswith(ended.said)
    assert hints in ended.hint


@pytest.mark.parametrize(("text", "kills"), [("nr_free 7\noom_kill 3\nx 1\n", 3), ("nr_free 7\n", None), (None, None)])
def test_the_kernels_kills_for_memory_are_counted(
    text: str | None, kills: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "vmstat"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(procfs, "VMSTAT", str(file))
    assert procfs.oom_kills() == kills
