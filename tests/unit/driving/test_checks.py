"""Checks by a process of the engine: the end of the process, and its answers."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from redline.driving import checks
from redline.driving.checks import checking
from redline.errors import DriveError
from redline.model import AgreedTls
from tests.fakes.checks import checked, unanswered

CHECK: dict[str, Any] = {"timeout_ns": 1_000_000_000, "keep_bytes": 8}


def engine(folder: Path, script: str) -> Path:
    """An engine that is a shell script, and answers only `check`."""
    made = folder / "engine"
    made.write_text(f'#!/bin/sh\n[ "$1" = check ] || exit 9\n{script}\n')
    made.chmod(0o755)
    return made


def test_each_check_is_answered_by_a_line(tmp_path: Path) -> None:
    answers = [
        checked(b"path0", tls={"version": "1.3", "cipher": "some", "alpn": None}),
        unanswered("closed", "it ended"),
    ]
    lines = "\n".join(f"read check; echo '{answer.model_dump_json()}'" for answer in answers)
    with checking(engine(tmp_path, lines)) as asking:
        one, other = asking.ask(CHECK), asking.ask(CHECK)
    assert (one.status, one.body, one.header("content-type"), one.wrong) == (200, b"path0", "text/plain", "")
    assert one.tls == AgreedTls(version="1.3", cipher="some", alpn=None)
    assert (other.status, other.body, other.header("content-type"), other.wrong) == (None, b"", "", "closed: it ended")


def test_the_check_goes_to_the_engine_as_it_is(tmp_path: Path) -> None:
    script = f"read -r check; echo \"$check\" > {tmp_path}/seen; echo '{checked().model_dump_json()}'"
    with checking(engine(tmp_path, script)) as asking:
        asking.ask(CHECK | {"request": {"path": "/ü"}})
    assert json.loads((tmp_path / "seen").read_text()) == CHECK | {"request": {"path": "/ü"}}


def test_an_engine_that_ends_is_named_with_what_it_said(tmp_path: Path) -> None:
    with checking(engine(tmp_path, "read check; echo 'out of luck' >&2; kill -9 $$")) as asking:
        with pytest.raises(
            DriveError, match=r"the engine was killed \(signal 9, SIGKILL\) before it gave a result: out of luck"
        ):
            asking.ask(CHECK)
        with pytest.raises(DriveError, match="was killed"):
            asking.ask(CHECK)


def test_an_error_of_the_engine_is_its_own(tmp_path: Path) -> None:
    event = {"event": "error", "kind": "job", "message": "no such host", "hint": "use another"}
    with (
        checking(engine(tmp_path, f"read check; echo '{json.dumps(event)}'")) as asking,
        pytest.raises(DriveError, match="no such host") as caught,
    ):
        asking.ask(CHECK)
    assert caught.value.hint == "use another"


@pytest.mark.parametrize("line", ["nothing", "{}", '{"event": "checked"}', '{"event": "error"}', "7"])
def test_what_cannot_be_is_an_error(tmp_path: Path, line: str) -> None:
    with (
        checking(engine(tmp_path, f"read check; echo '{line}'")) as asking,
        pytest.raises(DriveError, match="the engine wrote what cannot be"),
    ):
        asking.ask(CHECK)


def test_an_engine_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_BEYOND_TIMEOUT_S", 0.0)
    with (
        checking(engine(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")) as asking,
        pytest.raises(DriveError, match="did not end a check within 1 s"),
    ):
        asking.ask(CHECK)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_machine_without_an_engine(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="cannot be started: No such file"), checking(tmp_path / "none"):
        pass
