"""JSON that somebody else printed: read as far as it is what it should be."""

import json
from typing import Any


def read_object(output: str) -> dict[str, Any]:
    """The object from the first brace on; empty when there is none."""
    start = output.find("{")
    if start < 0:
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(output, start)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def member(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """An object within it; empty when there is none."""
    found = holder.get(name)
    return found if isinstance(found, dict) else {}
