"""A suite of two commands and a budget runs as it is: every route is compared, and the slower route is detected."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from redline.model import Metric, Report
from tests.e2e.conftest import Redline
from tests.e2e.lab import SERVER

pytestmark = pytest.mark.e2e

ROUTES = SERVER.with_name("routes.py")


@pytest.mark.long
def test_the_slower_route_is_found_among_three(redline: Redline, tmp_path: Path) -> None:
    old = shlex.join([sys.executable, "-I", "-S", str(ROUTES), "{port}"])
    suite = {
        "servers": [{"name": "old", "command": old}, {"name": "new", "command": f"{old} /items=6000"}],
        "scenarios": [{"name": name, "get": f"/{name}"} for name in ("items", "users", "orders")],
        "loads": {"load": {"closed": {"users": 2}, "for": "300ms"}},
        "warmup": "500ms",
        "budget": "5s",
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(suite))
    done = redline("run", tmp_path / "mine.yaml", "-o", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    found = {
        next(cell.scenario for cell in report.cells if cell.cell_id == each.cell_id): each
        for each in report.comparisons
        if each.metric is Metric.CPU_PER_REQUEST
    }
    assert found.keys() == {"items", "users", "orders"}
    ratios = {name: each.ratio.value for name, each in found.items() if each.ratio}
    assert ratios["items"] > 2
    assert max(ratios["users"], ratios["orders"]) < 2
    starts = [*(tmp_path / "run/logs").glob("*/server-0.log")]
    duets = [*(tmp_path / "run/duets").glob("*.json")]
    assert len(duets) == 3 * len(starts) >= 9
