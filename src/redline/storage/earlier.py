"""What versions before 0.1.0 stored, in today's form.

They kept a search in a `search.json` of its own, and cells had a `route` beside that of their variant. Comparisons by
`ab` had an `ab.json`, which says neither the suite nor the plan, so they cannot be judged again.
"""

from typing import Any

EARLY_SEARCH = "search.json"
EARLY_COMPARISON = "ab.json"
_SEARCH_FORMAT = "redline.search/2"
_DIRECT = "direct"

Raw = dict[str, Any]


def todays_manifest(stored: Raw) -> Raw:
    """The manifest of an earlier version as today's; any other is returned as it is, and refused by its reader."""
    if stored.get("format") == _SEARCH_FORMAT and isinstance(stored.get("manifest"), dict):
        search = {key: value for key, value in stored.items() if key not in ("format", "manifest", "url")}
        stored = {**stored["manifest"], "kind": "search", "search": search}
    plan = stored.get("plan")
    cells = plan.get("cells") if isinstance(plan, dict) else None
    if not isinstance(cells, dict) or not all(isinstance(cell, dict) for cell in cells.values()):
        return stored
    had_routes = [cell for cell in cells.values() if cell.get("route") == _DIRECT]
    if not had_routes:
        return stored
    without = {
        cell_id: {key: value for key, value in cell.items() if (key, value) != ("route", _DIRECT)}
        for cell_id, cell in cells.items()
    }
    return {**stored, "earlier": True, "plan": {**plan, "cells": without}}  # type: ignore[dict-item]


def todays_limit_report(stored: Raw) -> Raw:
    """The report of a search by an earlier version as today's: what was searched stands in its `suite`."""
    return {key: value for key, value in stored.items() if key != "url"}
