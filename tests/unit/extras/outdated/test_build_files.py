"""The versions that build files pin, of the shipped catalogue and of odd files."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.extras.outdated.build_files import read_pins

SHIPPED = Path(__file__).parents[4] / "catalogue"


def pins_of(folder: Path, name: str, text: str) -> dict[str, str]:
    """The pins of a file in a catalogue: package -> version."""
    file = folder / "catalogue" / "made" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return {pin.package: pin.version for pin in read_pins(folder / "catalogue")}


def test_the_shipped_catalogue_pins_what_its_files_say() -> None:
    pins = read_pins(SHIPPED)
    assert {pin.registry for pin in pins} == {"Go", "Maven", "crates.io", "npm", "PyPI"}
    assert len(set(pins)) == len(pins) > 70
    for pin in pins:
        text = pin.file.read_text()
        assert pin.version in text, pin
        assert pin.file.name == "server.yaml" or pin.package.rpartition(":")[2].lower() in text.lower(), pin
    named = {pin.package for pin in pins}
    assert named >= {"io.helidon:helidon-bom", "metosin:reitit-http", "com.networknt:server", "dev.zio:zio-http"}
    assert named >= {"ch.qos.logback:logback-classic", "axum", "fastify", "uvicorn", "io.vertx:vertx-web"}
    assert not any(package.startswith(("redline.catalogue", "org.apache.maven")) for package in named)


def test_a_server_in_several_versions_counts_in_its_newest() -> None:
    of = {pin.package: pin for pin in read_pins(SHIPPED)}
    for package, family in (
        ("io.vertx:vertx-web", "vertx"),
        ("io.netty:netty-codec-http", "netty"),
        ("io.quarkus.platform:quarkus-bom", "quarkus"),
        ("org.springframework.boot:spring-boot-dependencies", "spring-boot"),
    ):
        assert of[package].file == SHIPPED / family / "server.yaml"
        assert of[package].version in of[package].file.read_text()
    assert of["org.apache.pekko:pekko-stream"].file.name == "pekko.sbt"  # the other version is older


def test_a_pom_takes_properties_and_repositories_of_its_parents(tmp_path: Path) -> None:
    parent = tmp_path / "catalogue" / "made" / "stack.xml"
    parent.parent.mkdir(parents=True)
    parent.write_text("""<project xmlns="http://maven.apache.org/POM/4.0.0"><properties><a>1.0</a><b>3.0</b></properties>
        <repositories><repository><url>https://example.org/maven/</url></repository></repositories>
        <dependencies><dependency><groupId>g</groupId><artifactId>top</artifactId><version>9</version></dependency>
        </dependencies></project>""")
    child = """<project><parent><groupId>own</groupId><artifactId>stack</artifactId><version>1</version>
        <relativePath>../made/stack.xml</relativePath></parent><properties><a>2.0</a></properties>
        <dependencyManagement><dependencies><dependency><groupId>g</groupId><artifactId>bom</artifactId>
        <version>${b}</version><type>pom</type><scope>import</scope></dependency></dependencies></dependencyManagement>
        <dependencies>
        <dependency><groupId>g</groupId><artifactId>one</artifactId><version> ${a} </version></dependency>
        <dependency><groupId>g</groupId><artifactId>managed</artifactId></dependency>
        <dependency><groupId>g</groupId><artifactId>range</artifactId><version>[1,2)</version></dependency>
        <dependency><groupId>g</groupId><artifactId>open</artifactId><version>${unknown}</version></dependency>
        <dependency><groupId>${project.groupId}</groupId><artifactId>own</artifactId><version>1</version></dependency>
        </dependencies><build><plugins><plugin><groupId>p</groupId><artifactId>p</artifactId><version>1</version>
        </plugin></plugins></build></project>"""
    assert pins_of(tmp_path, "pom.xml", child) == {"g:one": "2.0", "g:bom": "3.0", "g:top": "9"}
    assert {pin.repositories for pin in read_pins(tmp_path / "catalogue")} == {("https://example.org/maven/",)}


def test_a_parent_that_is_no_file_is_pinned(tmp_path: Path) -> None:
    text = """<project><parent><groupId>org.springframework.boot</groupId>
        <artifactId>spring-boot-starter-parent</artifactId><version>3.5.0</version><relativePath/></parent></project>"""
    assert pins_of(tmp_path, "pom.xml", text) == {"org.springframework.boot:spring-boot-starter-parent": "3.5.0"}


def test_a_pom_that_is_its_own_parent_ends(tmp_path: Path) -> None:
    text = "<project><parent><relativePath>pom.xml</relativePath></parent></project>"
    assert pins_of(tmp_path, "pom.xml", text) == {}


def test_sbt(tmp_path: Path) -> None:
    text = """val one: String = "1.1" // https://example.org "no" % "comment" % "1"
val two = Servers.versionOr("2.2")
/* "not" % "this" % "1" */
libraryDependencies ++= Seq("a" % "java" % one, "a" %% "scala" % two, ("a" %%% "js" % "3.3").classifier("x"))
libraryDependencies += "a" %% "asked" % Servers.versionOr("4.4")
libraryDependencies += "a" % "unknown" % elsewhere
libraryDependencies += "a" % "object" % V.five
"""
    (tmp_path / "catalogue" / "made" / "project").mkdir(parents=True)
    (tmp_path / "catalogue" / "made" / "project" / "V.scala").write_text('object V { val five = "5.5" }')
    (tmp_path / "catalogue" / "made" / "project" / "plugins.sbt").write_text('addSbtPlugin("p" % "p" % "1")')
    found = pins_of(tmp_path, "build.sbt", text)
    assert found == {"a:java": "1.1", "a:scala": "2.2", "a:js": "3.3", "a:asked": "4.4", "a:object": "5.5"}
    scala = {pin.package for pin in read_pins(tmp_path / "catalogue") if pin.is_scala}
    assert scala == {"a:scala", "a:js", "a:asked"}


def test_cargo(tmp_path: Path) -> None:
    text = """[dependencies]
axum = "0.8"
other = { version = "=1.2.3", package = "real" }
local = { path = "../local" }
[target.'cfg(unix)'.dependencies]
nix = "^0.30"
[workspace.dependencies]
range = ">=1, <2"
"""
    assert pins_of(tmp_path, "Cargo.toml", text) == {"axum": "0.8", "real": "1.2.3", "nix": "0.30"}
    assert {pin.parts for pin in read_pins(tmp_path / "catalogue")} == {2, 3}


def test_npm(tmp_path: Path) -> None:
    text = """{"dependencies": {"@scope/a": "^1.2.3", "b": "4.5.6", "c": "file:../c", "d": "*"},
    "overrides": {"e": "7.0.0", "f": {"g": "1"}}, "devDependencies": {"h": "1.0.0"}}"""
    assert pins_of(tmp_path, "package.json", text) == {"@scope/a": "1.2.3", "b": "4.5.6", "e": "7.0.0"}


def test_requirements(tmp_path: Path) -> None:
    text = """# comment==1
fastapi==0.165.0 \\
    --hash=sha256:00
Typing_Extensions[extra] == 4.1 ; python_version > "3"
uvloop>=0.2
-r other.txt
"""
    found = pins_of(tmp_path, "requirements.txt", text)
    assert found == {"fastapi": "0.165.0", "typing-extensions": "4.1"}


def test_go(tmp_path: Path) -> None:
    text = """module example.org/mine/v2

go 1.24

require github.com/Single/line v1.0.0

require (
	golang.org/x/net v0.40.0
	example.org/transitive v1.1.0 // indirect
)
"""
    assert pins_of(tmp_path, "go.mod", text) == {"github.com/Single/line": "v1.0.0", "golang.org/x/net": "v0.40.0"}


def test_what_builds_left_is_not_read(tmp_path: Path) -> None:
    for folder in ("node_modules", "target", ".venv"):
        file = tmp_path / "catalogue" / "made" / folder / "a" / "package.json"
        file.parent.mkdir(parents=True)
        file.write_text("not JSON")
    assert pins_of(tmp_path, "package.json", '{"dependencies": {"b": "1.0.0"}}') == {"b": "1.0.0"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pom.xml", "<project>"),
        ("Cargo.toml", "dependencies = 1"),
        ("Cargo.toml", "["),
        ("package.json", "{"),
        ("package.json", "[]"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(UsageError, match=rf"made/{name} cannot be read: "):
        pins_of(tmp_path, name, text)


def test_a_catalogue_without_build_files_pins_nothing(tmp_path: Path) -> None:
    assert read_pins(tmp_path) == ()
