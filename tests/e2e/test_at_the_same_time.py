"""Two labs at once: each names the other, and one that is asked to waits, or refuses."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redline.watching.measurements import NAMED_BY, Measurements
from tests.e2e.conftest import Redline

WITHIN_S = 60.0


@contextmanager
def loading(redline: Redline, oracle: Path, *more: str) -> "Iterator[subprocess.Popen[str]]":
    """A load by another lab, from when others know of it; the block ends it."""
    process = redline.start("load", command(oracle), "-R", "50", "-d", "5m", "--json", *more)
    try:
        known, until_s = Measurements(Path(redline.environment[NAMED_BY])), time.monotonic() + WITHIN_S
        while process.pid not in {other.pid for other in known.others()}:
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=WITHIN_S)


def command(oracle: Path) -> str:
    return f"{oracle} null --port {{port}}"


def others_in(result: Any) -> list[str]:
    return [finding["message"] for finding in result["findings"] if finding["kind"] == "other-load"]


def test_each_names_the_other(redline: Redline, oracle: Path) -> None:
    """The one that began first learns of the other, which ends before it."""
    with loading(redline, oracle) as first:
        second = redline("load", command(oracle), "-R", "50", "-d", "1s", "--json")
        assert f"redline load (pid {first.pid}, of " in second.err
        (said,) = others_in(second.json)
        assert f"redline load (pid {first.pid}, of " in said
        first.send_signal(signal.SIGINT)
        out, _ = first.communicate(timeout=WITHIN_S)
    (said,) = others_in(json.loads(out))
    assert re.search(r"ran on this machine meanwhile: redline load \(pid \d+, of ", said)


def test_one_that_should_be_alone_is_refused_before_it_begins(redline: Redline, oracle: Path) -> None:
    with loading(redline, oracle) as first:
        refused = redline("ab", command(oracle), command(oracle), "--alone", "-o", "kept")
        refused.refused(2, "--alone", f"redline load (pid {first.pid}, of ")
    assert not (redline.folder / "kept").exists(), "the same command can be given again"


def test_one_that_waits_names_what_it_waits_for(redline: Redline, oracle: Path) -> None:
    with loading(redline, oracle, "--alone") as first:
        ended = redline("load", command(oracle), "-d", "1s", "--wait=1s")
        ended.refused(2, f"redline load (pid {first.pid}, of ", "still measures")
        assert "waiting until nothing else measures on this machine" in ended.err
    done = redline("load", command(oracle), "-R", "50", "-d", "1s", "--wait", "--json").measured()
    assert done.json["counts"]["outcomes"]["ok"] > 0, "a killed lab is waited for no longer"
    assert not any(f"redline load (pid {first.pid}, of " in said for said in others_in(done.json))
