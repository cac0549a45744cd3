"""The dashboard of Grafana asks for metrics and labels that a load has, in expressions that Prometheus reads."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from ruamel.yaml import YAML

from redline.extras.telemetry.openmetrics import exposition
from redline.ports import ServerUsage
from tests.unit.extras.telemetry.test_meter import CELL, TRIAL, families, intervals, loaded

FILES = Path(__file__).parents[4] / "docs/guide/grafana"
DASHBOARD = json.loads((FILES / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
VARIABLES: list[dict[str, Any]] = DASHBOARD["templating"]["list"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]


def known() -> tuple[set[str], set[str]]:
    """The names and labels of all series of a load with failures, of a server that is watched."""
    meter = loaded()
    meter.usage(CELL, "measure", ServerUsage(1_000_000_000, 500_000_000, 50 << 20))
    (interval, *_) = intervals()
    outcomes = interval.counts.outcomes.model_copy(update={"timeout": 1})
    counts = interval.counts.model_copy(update={"outcomes": outcomes})
    meter.interval(TRIAL, interval.model_copy(update={"counts": counts}))
    samples = [sample for family in families(exposition(meter)).values() for sample in family.samples]
    return {sample.name for sample in samples}, {label for sample in samples for label in sample.labels}


@pytest.mark.parametrize(("title", "target"), TARGETS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_panel_asks_for_what_there_is(title: str, target: dict[str, Any]) -> None:
    names, labels = known()
    promql_parser.parse(target["expr"].replace("$__rate_interval", "20s"))
    asked = set(re.findall(r"\b(?:redline|http_client)_\w+(?=\{)", target["expr"]))
    assert asked
    assert asked <= names, title
    by = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", target["expr"]) for label in group.split(",")}
    chosen = set(re.findall(r"(\w+)(?:=~|!=|=)\"", target["expr"]))
    shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert by | chosen | shown <= labels
    assert shown <= by, "a label that is summed over is empty"


def test_variables_choose_among_what_there_is_and_all_are_used() -> None:
    names, labels = known()
    asked = [re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", it.get("definition", "")) for it in VARIABLES]
    found = [match.groups() for match in asked if match]
    assert {name for name, _ in found} <= names
    assert {label for _, label in found} <= labels
    assert len(found) == len(VARIABLES) - 1, "the other one is the data source"
    text = json.dumps(PANELS)
    assert all(f"${variable['name']}" in text or f"${{{variable['name']}}}" in text for variable in VARIABLES)


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or a["y"] + a["h"] <= b["y"]
        assert apart or b["y"] + b["h"] <= a["y"]


def test_the_services_listen_here_alone_and_find_each_other() -> None:
    yaml = YAML(typ="safe")
    services = yaml.load((FILES / "compose.yaml").read_text())["services"]
    ports = [port for service in services.values() for port in service["ports"]]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert "--web.enable-remote-write-receiver" in services["prometheus"]["command"]
    mounted = [volume.split(":") for volume in services["grafana"]["volumes"]]
    assert all((FILES / source).is_file() for source, *_ in mounted)
    (source,) = yaml.load((FILES / "datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.load((FILES / "dashboards.yaml").read_text())["providers"]
    assert f"{provider['options']['path']}/dashboard.json" in {target for _, target, _ in mounted}
