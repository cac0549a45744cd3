"""`redline list`: a row a server, whatever the width of the terminal, and all that is known of some."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from redline.cli.command_line import app
from tests.fakes.catalogues import FAMILY, write_catalogue

LONG = "what " * 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(*args: str, columns: int | None = 80) -> str:
    done = CliRunner().invoke(
        app, ["list", *args], env={"COLUMNS": None if columns is None else str(columns)}, catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_each_server_has_a_row_that_fits(folder: Path, columns: int) -> None:
    write_catalogue(folder / "catalogue", fam=FAMILY.replace("no framework", LONG))
    lines = listed(columns=columns).splitlines()
    assert max(map(cell_len, lines)) <= columns
    servers = json.loads(listed("--json"))["servers"]
    for server in servers:
        name, at, version = server["name"].partition("@")
        (row,) = (line for line in lines if line.split(" ")[0] == name)
        if at:
            assert f"@{version}" in row  # a version has no row of its own
            continue
        assert row.split()[1:2] == ["cannot"] or server["state"] != "cannot be built"
    assert any(line.startswith("fam.plain") and line.endswith("…") for line in lines)
    assert len(lines) < len(servers) + 50


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_all_of_some_servers_fits_too_and_loses_nothing(folder: Path, columns: int) -> None:
    write_catalogue(folder / "catalogue", fam=FAMILY.replace("no framework", LONG))
    text = listed("fam", columns=columns)
    assert max(map(cell_len, text.splitlines())) <= columns
    assert text.count("what") == 60
    assert text.count("how many routes: 1, 128; 128 by default") == 1  # both servers have the option
    assert "off, server-log; off by default (layered)" in " ".join(text.split())
    assert "written in catalogue/fam/server.yaml" in text


def test_options_of_some_servers_name_versions_with_dots_in_full(folder: Path) -> None:
    assert "(vanilla, vanilla@4.1, vanilla@4.2, tapir-future, tapir-cats)" in " ".join(listed("netty").split())


def test_a_row_that_is_piped_is_not_cut_off(folder: Path) -> None:
    write_catalogue(folder / "catalogue", fam=FAMILY.replace("no framework", LONG))
    (row,) = (line for line in listed(columns=None).splitlines() if line.startswith("fam.plain"))
    assert row.count("what") == 60


def test_whose_a_server_is_and_what_it_hides_is_said(folder: Path) -> None:
    write_catalogue(folder / "catalogue", rust=FAMILY.replace("plain:", "hyper:"))
    (folder / "redline.yaml").write_text("servers:\n  - {name: go, start: './go --port {port}'}\n")
    text = listed()
    headings = ["Servers of redline.yaml", "Servers of your catalogue", "Built-in servers", "Built-in proxies"]
    assert [line for line in text.splitlines() if line in headings] == headings
    assert "in place of the built-in servers of the same names: rust.hyper" in text
    assert "in place of the built-in server" in " ".join(listed("rust.hyper").split())
    servers = {server["name"]: server for server in json.loads(listed("--json"))["servers"]}
    assert (servers["go"]["origin"], servers["go"]["written_in"]) == ("redline.yaml", "redline.yaml")
    assert (servers["rust.hyper"]["origin"], servers["rust.hyper"]["hides_built_in"]) == ("catalogue", True)
    assert servers["rust.axum"]["origin"] == "built-in"
    assert "hides_built_in" not in servers["rust.axum"]
    assert servers["fam.layered"]["about_options"]["log"] == {"about": "", "default": "off"}


def test_suites_have_the_names_by_which_they_are_run(folder: Path) -> None:
    (folder / "suites").mkdir()
    (folder / "suites/mine.yaml").write_text("about: my own\n")
    suites = json.loads(listed("--json"))["suites"]
    assert suites[0]["name"] == "mine"
    assert suites[0]["about"].startswith("not valid: ")
    assert "quickstart" in [suite["name"] for suite in suites]


def test_a_proxy_that_cannot_be_built_says_why(folder: Path) -> None:
    needs = "needs: [{command: no-such-tool, hint: there is none}]"
    write_catalogue(folder / "catalogue", fam=FAMILY.replace("needs: [{command: make, hint: install make}]", needs))
    assert "fam.plain" in listed()
    assert "cannot be built: no-such-tool is not" in " ".join(listed("fam.plain").split())
