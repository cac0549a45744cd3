"""`redline list --outdated`, with registries on this machine."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from redline.asking import places
from redline.cli.command_line import app
from redline.cli.contracts import OutdatedResult
from redline.extras.outdated import registries
from tests.fakes.catalogues import FAMILY, write_catalogue
from tests.fakes.serving import serving

SCHEMA = Path(__file__).parents[4] / "docs" / "reference" / "cli.schema.json"
POM = """<project><repositories><repository><url>{second}</url></repository></repositories><dependencies>
<dependency><groupId>org.made</groupId><artifactId>first</artifactId><version>1.0.0.Final</version></dependency>
<dependency><groupId>org.made</groupId><artifactId>second</artifactId><version>0.0.1-alpha7</version></dependency>
</dependencies></project>"""
SBT = """libraryDependencies ++= Seq("org.made" %% "three" % "1.0", "org.made" %% "two" % "1.0")
"""
BUILD_FILES = {
    "build.sbt": SBT,
    "Cargo.toml": '[dependencies]\naxum = "0.8.9"\nrustls = "0.23"\nnix = "0.30"\n',
    "package.json": '{"dependencies": {"@scope/a": "5.12.8"}}',
    "requirements.txt": "fastapi==0.165.0\n",
    "go.mod": "module m\nrequire github.com/Made/net v0.40.0\n",
}


def _maven(*versions: str) -> str:
    listed = "".join(f"<version>{version}</version>" for version in versions)
    return f"<metadata><versioning><release>9.9-RC1</release><versions>{listed}</versions></versioning></metadata>"


def _crate(*versions: str, yanked: str = "") -> str:
    return "\n".join(
        json.dumps({"vers": version, "yanked": version == yanked}) for version in (*versions, yanked) if version
    )


NEWEST = {
    "/maven/org/made/first/maven-metadata.xml": _maven("1.0.0.Final", "1.10.0.Final", "1.9.0.Final", "2.0.0.CR1"),
    "/second/org/made/second/maven-metadata.xml": _maven("0.0.1-alpha7", "0.0.1-alpha8"),
    "/maven/org/made/three_3/maven-metadata.xml": _maven("1.0", "1.1", "1.2-M1"),
    "/maven/org/made/two_2.13/maven-metadata.xml": _maven("1.0", "1.3"),
    "/crates/ax/um/axum": _crate("0.8.9", "0.9.0", yanked="0.9.1"),
    "/crates/ru/st/rustls": _crate("0.23.0", "0.23.46"),
    "/crates/3/n/nix": _crate("0.30.1", "0.31.2"),
    "/npm/@scope%2Fa/latest": '{"version": "5.13.0"}',
    "/pip/pypi/fastapi/json": json.dumps(
        {"releases": {"0.165.0": [{"yanked": False}], "0.166.0": [{}], "0.167.0": [{"yanked": True}], "1.0rc1": [{}]}}
    ),
    "/go/github.com/!made/net/@latest": '{"Version": "v0.41.0"}',
}
ROWS = [
    ("Go", "github.com/Made/net", "v0.40.0", "v0.41.0"),
    ("Maven", "org.made:first", "1.0.0.Final", "1.10.0.Final"),
    ("Maven", "org.made:second", "0.0.1-alpha7", "0.0.1-alpha8"),
    ("Maven", "org.made:three", "1.0", "1.1"),
    ("Maven", "org.made:two", "1.0", "1.3"),
    ("PyPI", "fastapi", "0.165.0", "0.166.0"),
    ("crates.io", "axum", "0.8.9", "0.9.0"),
    ("crates.io", "nix", "0.30", "0.31.2"),
    ("npm", "@scope/a", "5.12.8", "5.13.0"),
]


class FakeRegistries(ThreadingHTTPServer):
    """All registries at one address. `answers` is by path; other paths are not found."""

    def __init__(self) -> None:
        self.answers: dict[str, str | int] = {**NEWEST}
        self.authorized: dict[str, str | None] = {}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistries

    def do_GET(self) -> None:
        self.server.authorized[self.path] = self.headers["Authorization"]
        answer = self.server.answers.get(self.path, 404)
        self.send_response(answer if isinstance(answer, int) else 200)
        content = b"" if isinstance(answer, int) else answer.encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake() -> Iterator[FakeRegistries]:
    with serving(FakeRegistries()) as server:
        yield server


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeRegistries) -> Path:
    """The only catalogue, whose build files pin packages of all registries."""
    folder = tmp_path / "project"
    write_catalogue(folder / "catalogue", fam=FAMILY)
    for name, text in {**BUILD_FILES, "pom.xml": POM.format(second=f"http://{fake.address}/second")}.items():
        (folder / "catalogue" / "fam" / name).write_text(text)
    settings = tmp_path / "home" / ".m2" / "settings.xml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        "<settings><mirrors><!-- <mirror><url>http://old/</url></mirror> -->"
        f"<mirror><id>m</id><url>http://{fake.address}/maven/</url></mirror></mirrors></settings>"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setattr(places, "_CHECKOUT", folder)
    monkeypatch.setattr(registries, "CRATES", f"http://{fake.address}/crates")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("npm_config_registry", f"http://{fake.address}/npm/")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:se%40cret@{fake.address}/pip/simple/")
    monkeypatch.setenv("GOPROXY", f"off,http://{fake.address}/go,direct")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder / "catalogue" / "fam"


def outdated(*args: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["list", "--outdated", *args], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done.stdout


def as_json(status: int = 0) -> OutdatedResult:
    text = outdated("--json", status=status)
    jsonschema.validate(json.loads(text), json.loads(SCHEMA.read_text()))
    return OutdatedResult.model_validate_json(text)


@pytest.mark.usefixtures("catalogue")
def test_each_outdated_package_is_a_row(fake: FakeRegistries) -> None:
    result = as_json()
    assert [(row.registry, row.package, row.version, row.newest) for row in result.outdated] == ROWS
    assert (result.packages, result.unanswered) == (len(ROWS) + 1, ())
    header, *lines = outdated().splitlines()
    assert header.split("  ")[0] == "package"
    assert [tuple(line.split()[:3]) for line in lines] == [row[1:] for row in ROWS]
    assert [line.split()[-1] for line in lines if line.startswith("axum")] == ["catalogue/fam/Cargo.toml"]
    assert {path: value for path, value in fake.authorized.items() if value} == {
        "/pip/pypi/fastapi/json": "Basic bWU6c2VAY3JldA=="
    }


def test_a_package_in_two_files_is_one_row(catalogue: Path) -> None:
    other = catalogue / "other" / "package.json"
    other.parent.mkdir()
    other.write_text(BUILD_FILES["package.json"])
    (row,) = (row for row in as_json().outdated if row.registry == "npm")
    assert row.files == ("catalogue/fam/package.json", "catalogue/fam/other/package.json")


def test_nothing_is_outdated(catalogue: Path) -> None:
    for file in (*map(catalogue.joinpath, BUILD_FILES), catalogue / "pom.xml"):
        if file.name != "package.json":
            file.unlink()
    (catalogue / "package.json").write_text('{"dependencies": {"@scope/a": "5.13.0"}}')
    assert outdated() == "the only package is the newest\n"
    (catalogue / "Cargo.toml").write_text('[dependencies]\nrustls = "0.23"\n')
    assert outdated() == "all 2 packages are the newest\n"


def test_a_catalogue_that_names_no_versions(catalogue: Path) -> None:
    for file in (*map(catalogue.joinpath, BUILD_FILES), catalogue / "pom.xml"):
        file.unlink()
    assert outdated() == "no build file of the catalogue names a package in a version\n"


@pytest.mark.usefixtures("catalogue")
def test_what_a_registry_does_not_say_is_a_line_for_each_reason(fake: FakeRegistries) -> None:
    del fake.answers["/maven/org/made/two_2.13/maven-metadata.xml"]
    fake.answers["/npm/@scope%2Fa/latest"] = 503
    fake.answers["/pip/pypi/fastapi/json"] = "<html>"
    fake.answers["/go/github.com/!made/net/@latest"] = '{"Version": 1}'
    fake.answers["/crates/ax/um/axum"] = '{"vers": "1"}'
    fake.answers["/crates/3/n/nix"] = "[]"
    lines = [line for line in outdated(status=1).splitlines() if "is not known" in line]
    unknown, host = "the newest release is not known of", fake.address
    assert lines == [
        f"Go: {unknown} github.com/Made/net: {host}: an answer without versions",
        f"Maven: {unknown} org.made:two: {host}: not found",
        f"PyPI: {unknown} fastapi: {host}: an answer without versions",
        f"crates.io: {unknown} 2 packages, such as axum: {host}: an answer without versions",
        f"npm: {unknown} @scope/a: {host}: HTTP 503",
    ]
    assert [each.packages for each in as_json(status=1).unanswered if each.registry == "crates.io"] == [("axum", "nix")]


@pytest.mark.usefixtures("catalogue")
def test_without_a_network_each_registry_has_a_line(fake: FakeRegistries, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.shutdown()
    fake.server_close()
    monkeypatch.setenv("npm_config_registry", "file:///etc/")
    lines = outdated(status=1).splitlines()
    refused = f"{fake.address}: connection refused"
    unknown = "the newest release is not known of"
    assert lines == [
        f"Go: {unknown} github.com/Made/net: {refused}",
        f"Maven: {unknown} 4 packages, such as org.made:first: {refused}",
        f"PyPI: {unknown} fastapi: {refused}",
        f"crates.io: {unknown} 3 packages, such as axum: {refused}",
        f"npm: {unknown} @scope/a: no host: not an address of http",
    ]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    "address", ["http://me:secret@[x/simple", "http://me:se/cret@127.0.0.1:1x/", "secret", "http://"]
)
def test_a_wrong_address_is_a_line_without_its_password(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", address)
    (line,) = (line for line in outdated(status=1).splitlines() if "is not known" in line)
    assert line.startswith("PyPI: the newest release is not known of fastapi: ")
    assert "cret" not in line


def test_names_do_not_go_with_it() -> None:
    done = CliRunner().invoke(app, ["list", "rust", "--outdated"])
    assert "--outdated is for whole catalogues" in str(done.exception)


def test_addresses_without_settings_are_the_public_ones(tmp_path: Path) -> None:
    public = ["repo.maven.apache.org", "index.crates.io", "registry.npmjs.org", "pypi.org", "proxy.golang.org"]
    bases = registries.bases_of({"GOPROXY": "direct"}, tmp_path)
    assert [base.split("/")[2] for base in bases.values()] == public
