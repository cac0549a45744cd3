"""The flags that choose from a suite, as `redline check` takes them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redline.asking.suites import read_overrides
from redline.cli.command_line import app
from redline.errors import UsageError
from tests.fakes import asks
from tests.fakes.catalogues import write_catalogue

SUITE = """\
servers: [fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]
baseline: {fam.layered: fam.plain}
scenarios: [Get, Post]
loads:
  one: {closed: {users: 1}, for: 20s}
  many: {closed: {users: 64}, for: 20s}
warmup: 10s
trials: 4
quick: {warmup: 1s, for: 2s, trials: 2}
"""


def checked(folder: Path, *flags: str) -> dict[str, Any]:
    write_catalogue(folder / "catalogue")
    (folder / "some.yaml").write_text(SUITE, encoding="utf-8")
    done = CliRunner().invoke(app, ["check", str(folder / "some.yaml"), "--json", *flags], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_plan_of_many_cells_has_a_line_a_server(tmp_path: Path) -> None:
    loads = "".join(f"  load{users}: {{closed: {{users: {users}}}, for: 1s}}\n" for users in range(1, 22))
    write_catalogue(tmp_path / "catalogue")
    (tmp_path / "some.yaml").write_text(
        f"servers: [fam.plain, fam.layered]\nscenarios: [Get, Post]\ntrials: 2\nloads:\n{loads}", encoding="utf-8"
    )
    lines = CliRunner().invoke(app, ["check", str(tmp_path / "some.yaml")], catch_exceptions=False).stdout.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["fam.plain", "2", "21", "42", "84"],
        ["fam.layered", "2", "21", "42", "84"],
    ]
    assert lines[-1].startswith("84 cells, 168 trials")


def slugs(document: dict[str, Any]) -> list[str]:
    return [cell["slug"] for cell in document["cells"]]


def test_quick_keeps_every_cell_and_shortens_it(tmp_path: Path) -> None:
    whole, quick = checked(tmp_path), checked(tmp_path, "--quick")
    assert slugs(whole) == slugs(quick)
    assert len(slugs(whole)) == 12
    assert {(cell["warmup_ns"], cell["duration_ns"], cell["trials"]) for cell in quick["cells"]} == {
        (1_000_000_000, 2_000_000_000, 2)
    }
    longer = checked(tmp_path, "--quick", "-d", "5s", "--warmup", "0s", "--trials", "3")
    assert {(cell["warmup_ns"], cell["duration_ns"], cell["trials"]) for cell in longer["cells"]} == {
        (0, 5_000_000_000, 3)
    }


def test_options_and_users_select(tmp_path: Path) -> None:
    document = checked(tmp_path, "-w", "log=off", "-u", "64", "-m", "Get")
    assert slugs(document) == ["fam.plain.Get.many", "fam.layered.Get.many"]
    several = checked(tmp_path, "-w", "log=server-log,routes=128", "-s", "fam.layered", "-u", "8")
    assert slugs(several) == [f"fam.layered+log=server-log.{scenario}.users8" for scenario in ("Get", "Post")]


@pytest.mark.parametrize("written", ["log", "=off", "log=", "="])
def test_an_option_has_a_name_and_a_value(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_overrides(asks.of_suite(options=[written]))
    assert "is not an option with its value" in str(caught.value.problems[0].message)
    assert "-w interceptor=off" in str(caught.value.problems[0].hint)


@pytest.mark.parametrize(("written", "factor"), [("0.2", 0.2), ("20%", 0.2), (" 150 % ", 1.5), ("2", 2.0)])
def test_a_factor_is_a_number_or_a_percentage(written: str, factor: float) -> None:
    assert read_overrides(asks.of_suite(scale=written)).scale == factor


@pytest.mark.parametrize("written", ["auto", "0", "-1", "inf", "nan", "%"])
def test_what_is_no_factor_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="is not a factor") as caught:
        read_overrides(asks.of_suite(scale=written))
    assert "--scale 20%" in str(caught.value.problems[0].hint)


def test_the_screen_of_a_suite_is_shown_with_how_much_it_leaves_out(tmp_path: Path) -> None:
    family = """\
runtime: jvm
build: {run: [make], inputs: [src/**], outputs: [out]}
options:
  jdk: {values: [17, 21], default: 21}
  gc: {values: [G1, Z], default: G1}
  heap: {values: [1g, 2g], default: 2g}
servers:
  plain: {about: plain, start: {command: ["{java}", "-Xmx{heap}", "-XX:+Use{gc}GC", "{port}"]}}
"""
    write_catalogue(tmp_path / "catalogue", two=family)
    suite = tmp_path / "some.yaml"
    suite.write_text(
        "servers: [two.plain]\njvm: {jdk: [17, 21], gc: [G1, Z], heap: [1g, 2g]}\nscenarios: [Get]\n"
        "loads: {one: {closed: {users: 1}, for: 1s}}\n"
    )
    done = CliRunner().invoke(app, ["check", str(suite), "--screen"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "screen of two.plain: 4 of 8 variants, resolution III" in done.stdout
    assert "4 cells, 20 trials" in done.stdout
