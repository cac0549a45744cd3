"""The user's catalogue, redline.yaml and the built-in catalogue as one: what suites can name."""

from pathlib import Path
from typing import Any

import pytest

from redline.asking.catalogues import named_in, read_catalogue, read_catalogues
from redline.asking.suites import read_suite_file
from redline.cli.commands.build import matching
from redline.errors import UsageError
from redline.launching.builds import Builds
from redline.model import Suite
from tests.fakes import asks
from tests.fakes.catalogues import FAMILY, write_catalogue

ROOT = Path(__file__).parents[3]
SUITE = """\
servers: [{servers}]
scenarios: [{{name: Root, get: /}}]
loads: {{saturate: {{closed: {{users: 4}}, for: 1s}}}}
"""
PROJECT = """\
servers:
  - {name: go, start: './go --port {port}', build: make, env: {N: '1'}, ready: {path: /up}}
  - {name: old, url: 'http://127.0.0.1:8080'}
  - {name: rust.hyper, start: './mine --port {port}'}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite_of(servers: str, **flags: Any) -> Suite:
    Path("suite.yaml").write_text(SUITE.format(servers=servers))
    return read_suite_file(Path("suite.yaml"), asks.of_suite(**flags))[0]


def test_beside_an_own_catalogue_the_built_in_servers_proxies_and_scenarios_are_there(folder: Path) -> None:
    write_catalogue(folder / "catalogue", rust=FAMILY.replace("plain:", "hyper:"))
    known = read_catalogues()
    assert {"fam.plain", "rust.layered", "rust.axum", "oracle.null", "proxy.nginx"} <= set(known.merged.servers)
    assert {"Get", "SimpleGet"} <= set(known.merged.scenarios)
    assert [*known.merged.servers][:2] == ["fam.plain", "fam.layered"]
    hyper = known.merged.servers["rust.hyper"]
    assert (hyper.family_folder, known.origin(hyper)) == (str(folder / "catalogue/rust"), "catalogue")
    assert known.origin(known.merged.servers["rust.axum"]) == "built-in"
    suite = suite_of("fam.plain, oracle.null")
    assert [variant.slug for variant in suite.variants] == ["fam.plain", "oracle.null"]


def test_a_folder_of_that_name_without_servers_is_no_catalogue(folder: Path) -> None:
    (folder / "catalogue" / "shoes").mkdir(parents=True)
    known = read_catalogues()
    assert not known.own.servers
    assert "rust.hyper" in known.nearest.servers
    assert "rust.hyper" in read_catalogue(folder / "suite.yaml").servers


def test_without_names_the_own_catalogue_is_built_and_ours_by_name_alone(folder: Path) -> None:
    write_catalogue(folder / "catalogue")
    assert set(read_catalogues().nearest.servers) == {"fam.plain", "fam.layered", "slow.vanilla", "top.null"}
    names = tuple(read_catalogues().merged.servers)
    assert matching(names, ("rust", "fam.l*")) == ("fam.layered", "rust.hyper", "rust.axum")
    with pytest.raises(UsageError, match="no server of the catalogue matches `ruts`") as refused:
        matching(names, ("ruts",))
    assert "`rust`" in refused.value.hint


def test_a_build_is_remembered_beside_its_own_catalogue(folder: Path) -> None:
    write_catalogue(folder / "catalogue")
    servers = read_catalogues().merged.servers
    builds = Builds(folder / "catalogue", folder / ".cache")
    assert builds._stamp_file(servers["fam.plain"]).parent == folder / ".cache/builds"
    assert builds._stamp_file(servers["rust.hyper"]).parent == ROOT / ".cache/builds"
    near = Builds(ROOT / "catalogue", ROOT / ".cache")
    assert near._stamp_file(servers["rust.hyper"]) == builds._stamp_file(servers["rust.hyper"])


def test_a_suite_names_servers_of_redline_yaml(folder: Path) -> None:
    (folder / "redline.yaml").write_text(PROJECT)
    suite = suite_of(["go", "use: go, http: 2, tls: {insecure: true}}"][0] + ", old, rust.hyper, rust.axum")
    go, old, hyper, axum = suite.variants
    assert (go.slug, go.catalogued.about, go.catalogued.ready.path) == ("go", "./go --port {port}", "/up")
    assert (go.catalogued.family_folder, go.catalogued.start.env) == (str(folder), {"N": "1"})
    assert (old.slug, old.is_attached) == ("old", True)
    assert (hyper.slug, hyper.catalogued.about) == ("rust.hyper", "./mine --port {port}")
    assert axum.catalogued.family_folder == str(ROOT / "catalogue/rust")


def test_the_folder_is_that_of_redline_yaml_and_not_of_the_suite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "redline.yaml").write_text(PROJECT)
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert suite_of("go").variants[0].catalogued.family_folder == str(folder)


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("{use: go, with: {routes: 1}}", "`go` is a server of redline.yaml, and cannot have `with`"),
        ("{use: old, in: container}", "`old` is a server of redline.yaml, and cannot have `in`"),
        ("gop", "there is no server `gop` in the catalogue"),
    ],
)
def test_what_such_a_server_cannot_have_is_said(folder: Path, server: str, says: str) -> None:
    (folder / "redline.yaml").write_text(PROJECT)
    with pytest.raises(UsageError, match=says):
        suite_of(server)


def test_a_broken_redline_yaml_matters_where_the_catalogue_lacks_the_name(folder: Path) -> None:
    (folder / "redline.yaml").write_text("servers: [{name: go}]\n")
    assert suite_of("rust.hyper").variants[0].slug == "rust.hyper"
    with pytest.raises(UsageError, match=r"redline.yaml:1:11: servers\[0\]: this server has none of start") as refused:
        suite_of("go, gop")
    assert len(refused.value.problems) == 1, "not also that the catalogue has no such server"


def test_a_version_that_no_server_has_is_refused_with_those_that_it_has(folder: Path) -> None:
    assert [*named_in(["rust.hyper", "./rust.hyper {port}", "spring-boot.tomcat@4", "main"]).servers] == [
        "rust.hyper",
        "spring-boot.tomcat@4",
    ]
    with pytest.raises(UsageError, match=r"spring-boot.tomcat has no version 7") as caught:
        named_in(["spring-boot.tomcat@7"])
    assert "spring-boot.tomcat@4" in str(caught.value.hint)
    with pytest.raises(UsageError, match=r"rust.hyper has no version 2") as caught:
        named_in(["rust.hyper@2"])
    assert "names no `versions`" in str(caught.value.hint)
    assert not named_in(["feature.x", "v1.2", "go.dev", "python.org", "rust.local"]).servers


@pytest.mark.parametrize("name", ["rust.hyperr", "vertx.vanila@5", "node.htp+routes=1"])
def test_a_name_that_is_mistyped_is_no_host_and_no_revision(name: str) -> None:
    with pytest.raises(UsageError, match="of the catalogue has no server") as caught:
        named_in([name])
    assert caught.value.hint.startswith("did you mean `")
