"""Compares outputs with files, byte for byte. `RENEW_GOLDEN=1 pytest` writes them again; then read the diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent


def check(name: str, actual: bytes) -> None:
    """Check that the output equals the golden file."""
    file = FOLDER / name
    if os.environ.get("RENEW_GOLDEN"):
        file.write_bytes(actual)
    assert actual == file.read_bytes(), f"{name} differs; if it should, renew it with RENEW_GOLDEN=1 and read the diff"
