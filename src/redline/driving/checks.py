"""A single request, sent by the engine as in a load. Readiness and verification use no other HTTP client."""

import hashlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from redline.driving.ending import EngineEnding
from redline.driving.engine_process import end_engine, log_tail, say, start_engine
from redline.driving.protocol import not_of_the_format
from redline.errors import DriveError
from redline.linux import procfs
from redline.model import AgreedTls, Frozen
from redline.model.failures import FirstFailure

_BEYOND_TIMEOUT_S, _ENDING_S = 20.0, 5.0
_FIRST_REFUSAL = 400


class Checked(Frozen):
    """The answer to a request, or why there is none. Without a complete answer `status`, headers and body are None.

    `step` is the place of the request in its journey, and `taken` has the values taken from the answer, if there are
    any. `missing_cookies` says which cookies the step was sent without, and why. Length and SHA-256 are those of the
    whole body, `body_base64` is its beginning. `outcome` is as under load.
    `closes`: the server takes no further request on the connection.
    """

    event: Literal["checked"]
    outcome: str
    failure: FirstFailure | None
    status: int | None
    headers: tuple[tuple[str, str], ...] | None
    interim: tuple[int, ...] = ()
    body_length: int | None
    body_sha256: str | None
    body_base64: bytes | None
    grpc_status: str | int | None = None
    address: str | None = None
    tls: AgreedTls | None = None
    has_surplus: bool = False
    closes: bool = False
    elapsed_ns: int
    step: int | None = None
    taken: dict[str, str] | None = None
    missing_cookies: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """The beginning of the body."""
        return self.body_base64 or b""

    @property
    def wrong(self) -> str:
        """The error: outcome, reason, place and bytes; empty if the answer is right."""
        if self.failure is not None:
            return self.failure.text
        return "" if self.outcome == "ok" else self.outcome.replace("_", " ")

    @property
    def is_refusal(self) -> bool:
        """Whether the status says that the request was wrong, or failed."""
        return self.status is not None and self.status >= _FIRST_REFUSAL

    def with_body(self, body: bytes) -> "Checked":
        """The same answer with another whole body, such as that of an encoded answer."""
        digest = hashlib.sha256(body).hexdigest()
        changed = {"body_base64": body, "body_length": len(body), "body_sha256": digest}
        return Checked.model_validate(dict(self) | changed)

    def header(self, name: str) -> str:
        """Return the first header of that name, in lower case; empty if there is none."""
        return next((value for key, value in self.headers or () if key == name), "")


class CheckProcess:
    """A running `redline-engine check`."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process, self._log = process, log
        self._kills = procfs.oom_kills()
        self._received = b""

    def ask(self, check: dict[str, Any]) -> Checked:
        """Answer a check (see docs/reference/engine-protocol.md). Raises DriveError if the engine gives no answer.

        The engine keeps to the check's timeout; the lab does not wait any longer.
        """
        say(self._process, json.dumps(check), more=True)
        line = self._line(check["timeout_ns"] / 1e9 + _BEYOND_TIMEOUT_S)
        if not line:
            raise self._ended()
        return _read(line)

    def walk(self, check: dict[str, Any]) -> Iterator[Checked]:
        """Answer a check of a journey: yield the answer to each step that was sent, up to the first that is wrong.

        Raises DriveError if the engine gives no answer. Each step has the check's timeout.
        """
        say(self._process, json.dumps(check), more=True)
        while True:
            line = self._line(check["timeout_ns"] / 1e9 + _BEYOND_TIMEOUT_S)
            if not line:
                raise self._ended()
            match _kind(line):
                case "walked":
                    return
                case "skipped":
                    continue
                case _:
                    yield _read(line)

    def _ended(self) -> DriveError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_S)
        code = self._process.poll()
        killed = procfs.oom_kills_since(self._kills)
        ending = EngineEnding(code or 0, log_tail(self._log), overdue=code is None, memory_kills=killed)
        return DriveError(str(ending), hint=ending.hint)

    def _line(self, within_s: float) -> str:
        """Return the engine's next line; empty if it ended.

        Lines come together, and `poll` knows nothing of those that a reader has in its memory: they are kept here.
        """
        assert self._process.stdout is not None
        poll, deadline_s = select.poll(), time.monotonic() + within_s
        poll.register(self._process.stdout, select.POLLIN)
        while b"\n" not in self._received:
            if not poll.poll(max(deadline_s - time.monotonic(), 0.0) * 1000):
                raise DriveError(
                    f"the engine did not end a check within {within_s:.3g} s",
                    hint="see whether this machine is overloaded, or the engine stopped",
                )
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                return ""
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()


@contextmanager
def checking(engine: Path) -> Iterator[CheckProcess]:
    """Yield a process for checks that ends with the block. Raises DriveError if the engine cannot be started."""
    descriptor = os.memfd_create("redline-engine.log")
    with os.fdopen(descriptor, "w") as log:
        process = start_engine(engine, log, "check")
        try:
            yield CheckProcess(process, Path(f"/proc/self/fd/{descriptor}"))
        finally:
            end_engine(process)


def _kind(line: str) -> str | None:
    """The kind of an event; None for a line that is none."""
    with suppress(ValueError, LookupError, TypeError):
        return str(json.loads(line)["event"])
    return None


def _read(line: str) -> Checked:
    try:
        return Checked.model_validate_json(line)
    except ValidationError as error:
        with suppress(ValueError, LookupError, TypeError):
            event = json.loads(line)
            if event["event"] == "error":
                raise DriveError(event["message"], hint=event["hint"]) from None
        raise not_of_the_format(line, error) from None
