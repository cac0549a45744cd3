"""Catalogue entries of the small servers, and how to find their processes."""

import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from redline.linux.procfs import process_ids
from redline.model import Build, Option, OptionValue, Ready, ServerEntry, Start, Stop, Tool, Variant

SCRIPT = Path(__file__).with_name("server.py")
TOKEN = "REDLINE_TEST_TOKEN"


def make_catalogue(folder: Path) -> Path:
    """A catalogue of one family whose build needs nothing and is quickly done."""
    (folder / "fake").mkdir(parents=True)
    (folder / "fake/input.txt").write_text("one")
    return folder


def server(
    behaviour: str = "healthy",
    *,
    command: tuple[str, ...] | None = None,
    within_ms: int = 5_000,
    grace_ms: int = 2_000,
    options: dict[str, OptionValue] | None = None,
    env: dict[str, str] | None = None,
    needs: tuple[Tool, ...] = (),
) -> Variant:
    """A variant that runs `server.py`; its processes carry a token of their own in the environment."""
    entry = ServerEntry(
        name=f"fake.{behaviour}",
        about="a fake",
        runtime="native",
        family_folder="fake",
        build=Build(run=("touch", "out"), inputs=("*.txt",), outputs=("out",)),
        start=Start(
            command=command or (sys.executable, "-I", "-S", str(SCRIPT), "{port}", behaviour),
            env={TOKEN: uuid.uuid4().hex, **(env or {})},
            needs=needs,
        ),
        ready=Ready(within_ns=within_ms * 1_000_000),
        stop=Stop(within_ns=grace_ms * 1_000_000),
        options={name: Option(values=(value,), default=value) for name, value in (options or {}).items()},
    )
    return Variant(entry=entry, options=options or {})


def alive(variant: Variant) -> list[int]:
    """All processes that carry the variant's token: its warden, the server, and their descendants."""
    mark = f"{TOKEN}={variant.catalogued.start.env[TOKEN]}".encode()
    found = []
    for pid in process_ids():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], bool], within_s: float = 20.0) -> bool:
    """Whether the condition becomes true; the bound only ends a broken test."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
