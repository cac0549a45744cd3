"""The catalogue's stand-in for a model server: its contract, proxies in front of it, and two of them compared."""

import json
from pathlib import Path

import pytest

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.model import Cell, Report, Verdict
from redline.suite import Overrides, load_catalogue, make_plan
from redline.suite.validate.resolve import read_suite
from tests.e2e.compared import answer
from tests.e2e.conftest import Redline
from tests.e2e.workshop import CATALOGUE, Workshop, entries, routed

pytestmark = pytest.mark.e2e

PAIR = """\
servers:
  - {{name: a, command: "{oracle} null --events 8 --tokens --event-gap {gap_us}us --port {{port}}"}}
  - {{name: b, command: "{oracle} null --events 8 --tokens --event-gap {other_us}us --port {{port}}"}}
scenarios: [{{name: Talk, post: /chat, json: {{stream: true}}, stream: openai}}]
loads: {{talk: {{closed: {{users: 16}}}}}}
metric: gap p50
budget: {budget}
warmup: 1s
seed: {seed}
"""
"""Two servers of tokens."""

MEDIAN, GAP_MS = 0.5, 10
TOKENS, OTHERS = 61, 3
WHOLE_NS = (TOKENS + OTHERS) * GAP_MS * 1_000_000
BUFFERING = [
    (name, str(value))
    for name, entry in entries().items()
    if entry.kind == "proxy" and "buffering" in entry.options
    for value in entry.options["buffering"].values
]


def chat(*route: object) -> Cell:
    """A user who follows chat completions of the stand-in on a route."""
    suite = {
        "servers": [{"use": "oracle.tokens", "with": {"gap": f"{GAP_MS}ms"}, "route": ["it"]}],
        "routes": {"it": list(route)},
        "scenarios": ["Chat"],
        "loads": {"one": {"closed": {"users": 1}, "for": "1s"}},
    }
    (cell,) = make_plan(read_suite(json.dumps(suite), "tokens", load_catalogue(CATALOGUE), Overrides())).cells.values()
    return cell


def followed(redline: Redline, workshop: Workshop, cell: Cell, folder: Path) -> dict[str, dict[float, int]]:
    """The percentiles of what two users saw who followed whole conversations: `first_event`, `gaps`, and `response`.

    A machine so busy that even the median of the gaps is not known is asked again.
    """
    with routed(workshop, cell.variant, folder) as server:
        assert EngineDriver(find_engine()).verify(cell, server.endpoint) is None
        url = f"http://{server.endpoint.host}:{server.endpoint.port}{cell.scenario.request.path}"
        for _ in range(3):
            done = redline("load", url, "-X", "POST", "--events", "openai", "-c", "2", "-d", "3s", "--json").measured()
            streams = done.json["streams"]
            if any(point["q"] == MEDIAN for point in streams["gaps"]):
                break
    assert streams["begun"] > 0
    assert streams["events_of_begun"] == TOKENS * streams["begun"], "each conversation came whole"
    assert streams.get("early", 0) == 0
    times = {"first_event": streams["first_event"], "gaps": streams["gaps"], "response": done.json["response"]}
    return {name: {point["q"]: point["ns"] for point in points} for name, points in times.items()}


def test_the_stand_in_sends_its_tokens_when_they_are_due(redline: Redline, workshop: Workshop, tmp_path: Path) -> None:
    times = followed(redline, workshop, chat("h1"), tmp_path)
    assert times["response"][0.5] >= WHOLE_NS
    # What is late once is not late for all of a conversation: half of its gaps cannot be half as long.
    assert times["gaps"][0.5] > GAP_MS * 500_000


@pytest.mark.parametrize(
    ("cell", "proxy", "buffering"),
    [
        pytest.param(
            chat("h1", {"use": name, "with": {"buffering": value}}, "h1"),
            name,
            value,
            id=f"{name}-{value}",
            marks=[] if value == "on" and name != "proxy.nginx" else [pytest.mark.long],
        )
        for name, value in BUFFERING
    ],
)
def test_a_proxy_passes_a_conversation_on_and_buffers_as_its_option_says(
    redline: Redline, workshop: Workshop, tmp_path: Path, cell: Cell, proxy: str, buffering: str
) -> None:
    times = followed(redline, workshop, cell, tmp_path)
    if (proxy, buffering) == ("proxy.caddy", "on"):
        assert times["first_event"][0.5] >= WHOLE_NS, "nothing comes before all has come"
    elif (proxy, buffering) == ("proxy.haproxy", "on"):
        assert times["gaps"][0.5] < GAP_MS * 500_000, "most tokens come with the one before them"
    else:
        assert times["gaps"][0.5] > GAP_MS * 500_000
        assert times["first_event"][0.5] < times["response"][0.5] / 2


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("planted", [True, False])
def test_five_percent_in_the_gaps_are_found_and_nothing_is_not(
    redline: Redline, oracle: Path, tmp_path: Path, seed: int, *, planted: bool
) -> None:
    """Tokens 50 ms apart, in conversations that outlast a slice, and 52.5 ms. A busy machine gets more time."""
    for budget in ("60s", "3m"):
        other_us = 52_500 if planted else 50_000
        text = PAIR.format(oracle=oracle, gap_us=50_000, other_us=other_us, budget=budget, seed=seed)
        (tmp_path / "pair.yaml").write_text(text)
        found = answer(Report.model_validate(redline("run", "pair.yaml", "-o", budget, "--json").json))
        assert found.ratio is not None, found.refused
        if found.verdict is not Verdict.INCONCLUSIVE:
            break
    assert found.ratio is not None
    if planted:
        assert found.verdict is Verdict.SLOWER, (found.ratio.value, found.ratio.interval)
        assert 1.03 < found.ratio.value < 1.07
    else:
        assert found.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}
