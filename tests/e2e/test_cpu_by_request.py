"""Which request of a mix uses the CPU time, of a server that needs known times."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from redline.model import Report
from redline.report.by_request import _WIDE as WIDE
from tests.e2e.conftest import Redline
from tests.fakes.servers.working import HEAVY_NS, LIGHT_NS

pytestmark = pytest.mark.e2e

WORKING = Path(__file__).parents[1] / "fakes" / "servers" / "working.py"
LIGHT, HEAVY = 4, 1
"""Their weights."""
MOST_BESIDE_NS = 1_000_000
"""The socket and the interpreter, for each request; far less on a machine that is not busy."""


def least_and_most() -> tuple[float, float]:
    """The share of `heavy`, with as much beside the work as there may be, and without."""
    shares = [
        HEAVY * (HEAVY_NS + beside) / (HEAVY * (HEAVY_NS + beside) + LIGHT * (LIGHT_NS + beside))
        for beside in (MOST_BESIDE_NS, 0)
    ]
    return shares[0], shares[1]


@pytest.mark.long
def test_the_cpu_time_of_a_mix_is_divided_among_its_requests(redline: Redline, tmp_path: Path) -> None:
    requests = {"light": {"get": "/light"}, "heavy": {"get": "/heavy"}}
    weights = {"light": LIGHT, "heavy": HEAVY}
    weighed = [{"name": name, **asked, "weight": weights[name]} for name, asked in requests.items()]
    suite = {
        "servers": [{"name": name, "command": f"{sys.executable} {WORKING} {{port}}"} for name in "AB"],
        "baseline": "A",
        "scenarios": [
            *({"name": name, **asked} for name, asked in requests.items()),
            {"name": "mix", "requests": weighed},
        ],
        "loads": {"load": {"closed": {"users": 4}, "for": "300ms"}},
        "warmup": "200ms",
        # What a core costs differs between starts of a second, on a busy machine by 10%. Weights that were not applied
        # would make the parts twice the mix.
        "threshold": 0.5,
    }
    for budget in ("5s", "60s"):  # on a busy machine some starts do not count
        (tmp_path / "suite.yaml").write_text(json.dumps({**suite, "budget": budget}))
        done = redline("run", "suite.yaml", "-o", f"kept-{budget}")
        kept = tmp_path / f"kept-{budget}"
        report = Report.model_validate_json((kept / "results.json").read_bytes())
        if done.code == 0 and not any(divided.reason for divided in report.cpu_by_request):
            break
    assert done.code == 0, done.err
    assert len(report.cpu_by_request) == 2
    least, most = least_and_most()
    for divided in report.cpu_by_request:
        assert divided.requests, divided.parts_over_mix
        _, heavy = divided.requests
        assert (heavy.request, heavy.of_requests) == ("heavy", HEAVY / (LIGHT + HEAVY))
        assert heavy.share.low is not None
        assert heavy.share.high is not None
        assert heavy.share.low < most
        assert heavy.share.high > least
        assert least - 0.15 < heavy.share.value < most + 0.15
    rows = list(csv.DictReader((kept / "results.csv").open()))
    assert [row["server"] for row in rows if row["metric"] == "cpu-of-mix:heavy"] == ["A", "B"]
    for name, divided in zip("AB", report.cpu_by_request, strict=True):
        low, high = divided.requests[-1].share.interval or (0.0, 1.0)
        said = re.search(rf"mix: of {name}'s CPU time, .* goes to heavy, which is 20% of the requests", done.out)
        assert (said is None) is (high - low > WIDE)
