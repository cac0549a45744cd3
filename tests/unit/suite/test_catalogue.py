"""A catalogue is read whole, families share their common keys, and every mistake is reported with its place."""

import re
from pathlib import Path

import pytest

from redline.errors import Problem, UsageError
from redline.model import Expected, Option, Tool
from redline.suite import load_catalogue
from tests.fakes.catalogues import FAMILY, SCENARIOS, small_catalogue, write_catalogue


def problems_of(folder: Path, **files: str) -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        load_catalogue(write_catalogue(folder, **files))
    return caught.value.problems


def test_servers_have_full_names_and_scenarios_theirs(tmp_path: Path) -> None:
    catalogue = small_catalogue(tmp_path)
    assert list(catalogue.servers) == ["fam.plain", "fam.layered", "slow.vanilla", "top.null"]
    assert [entry.name for entry in catalogue.servers.values()] == list(catalogue.servers)
    assert list(catalogue.scenarios) == ["Get", "GetMulti", "Post"]


def test_what_a_server_takes_from_its_family_and_what_it_says_itself(tmp_path: Path) -> None:
    family = FAMILY.replace(
        "    about: no framework\n", "    about: no framework\n    build: {outputs: [out/own], folder: ../x}\n"
    )
    entry = load_catalogue(write_catalogue(tmp_path, fam=family)).servers["fam.plain"]
    assert entry.catalogue_build.run == ("make", "all")
    assert entry.catalogue_build.outputs == ("out/own",)
    assert entry.catalogue_build.needs == (Tool(command="make", hint="install make"),)
    assert entry.family_folder == str(tmp_path / "fam")
    assert entry.build_folder == str(tmp_path / "fam" / ".." / "x")
    assert (entry.ready.path, entry.ready.status, entry.ready.within_ns) == ("/", 200, 10_000_000_000)
    assert entry.stop.within_ns == 5_000_000_000


def test_options_of_family_and_server_are_joined(tmp_path: Path) -> None:
    entry = small_catalogue(tmp_path).servers["fam.layered"]
    assert entry.options == {
        "routes": Option(about="how many routes", values=(1, 128), default=128),
        "log": Option(values=("off", "server-log"), default="off"),
    }
    assert (entry.ready.path, entry.ready.within_ns) == ("/path0", 30_000_000_000)


VERSIONED = FAMILY.replace(
    "    about: no framework\n",
    "    about: no framework\n"
    '    versions: {"4": 4.5.13, "5": 5.1.6}\n'
    '    build: {target: plain, outputs: ["out/{target}/server"]}\n',
).replace(
    '["{folder}/out/server", --port, "{port}", --routes, "{routes}"]', '["out/{target}/server", "{port}", "{routes}"]'
)


def test_a_version_is_a_server_with_a_build_of_its_own(tmp_path: Path) -> None:
    servers = load_catalogue(write_catalogue(tmp_path, fam=VERSIONED)).servers
    assert [name for name in servers if name.startswith("fam.plain")] == ["fam.plain", "fam.plain@4", "fam.plain@5"]
    seen = {
        name: (entry.catalogue_build.target, entry.catalogue_build.outputs[0], entry.start.command[0])
        for name, entry in servers.items()
        if name.startswith("fam.plain")
    }
    own = ("plain", "out/plain/server", "out/plain/server")
    other = ("plain@5.1.6", "out/plain@5.1.6/server", "out/plain@5.1.6/server")
    assert seen == {"fam.plain": own, "fam.plain@4": own, "fam.plain@5": other}
    assert servers["fam.plain"].about == "no framework"
    assert servers["fam.plain@5"].about == "no framework; here 5.1.6 in place of 4.5.13"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"out/{target}/server"]}', '"out/server"]}', "would overwrite each other's outputs"),
        ("target: plain, ", "", "versions and `{target}` need `build.target`"),
        ('"4": 4.5.13', '"4": "a b"', "a b"),
    ],
)
def test_versions_that_cannot_be_built_apart_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in VERSIONED
    (problem,) = problems_of(tmp_path, fam=VERSIONED.replace(old, new))
    assert says in problem.message
    assert problem.place is not None
    assert problem.place.line is not None


def test_the_first_version_of_each_shipped_server_is_what_its_build_has() -> None:
    """The exact versions stand in server.yaml and in the build: `@LABEL` of the first is built as the server itself."""
    root = Path(__file__).parents[3] / "catalogue"
    servers = load_catalogue(root).servers
    versioned = [name for name in servers if f"{name}@" in " ".join(servers)]
    assert versioned
    maven = (pom for folder in ("java", "clojure") for pom in (root / folder).glob("*/pom.xml"))
    builds = [*maven, *(root / "scala").glob("*.sbt")]
    pinned = " ".join(re.findall(r"(?:entry\.version>|versionOr\(\")([^<\"]+)", "".join(map(Path.read_text, builds))))
    for name in versioned:
        own = servers[next(other for other in servers if other.startswith(f"{name}@"))]
        assert own.catalogue_build == servers[name].catalogue_build
        assert own.about == servers[name].about
        other = next(entry for entry in servers.values() if entry.name.startswith(f"{name}@") and entry is not own)
        assert other.about.rpartition(" in place of ")[2] in pinned.split(), name


def test_scenarios(tmp_path: Path) -> None:
    scenarios = small_catalogue(tmp_path).scenarios
    assert scenarios["GetMulti"].requires == {"routes": 128}
    assert scenarios["Get"].request.expect == Expected(status=200, body="path0", under_load="length")
    body = scenarios["Post"].request.body
    assert body is not None
    assert len(body.content()) == 256


@pytest.mark.parametrize(("http", "legs"), [("[1.1, 2]", ("h1", "h2c")), ("[2]", ("h2c",))])
def test_a_server_may_speak_either_version_or_both(tmp_path: Path, http: str, legs: tuple[str, ...]) -> None:
    family = FAMILY.replace("    about: no framework\n", f"    about: no framework\n    http: {http}\n")
    assert load_catalogue(write_catalogue(tmp_path, fam=family)).servers["fam.plain"].serves == legs


def test_the_readiness_request_has_headers(tmp_path: Path) -> None:
    ready = "within: 30s, status: 204, headers: {Authorization: Bearer key, Accept: [a/b, c/d]}"
    family = FAMILY.replace("within: 30s", ready)
    found = load_catalogue(write_catalogue(tmp_path, fam=family)).servers["fam.layered"].ready
    assert (found.status, found.headers) == (204, {"Authorization": "Bearer key", "Accept": ("a/b", "c/d")})


def test_folders_without_a_server_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "catalogue" / "target").mkdir(parents=True)
    assert small_catalogue(tmp_path).servers


def test_a_catalogue_without_scenarios_has_none(tmp_path: Path) -> None:
    folder = write_catalogue(tmp_path)
    (folder / "scenarios.yaml").unlink()
    assert load_catalogue(folder).scenarios == {}


def test_every_problem_of_all_files_at_once(tmp_path: Path) -> None:
    problems = problems_of(
        tmp_path, fam=FAMILY.replace("inputs", "inptus"), slow="servers: [", scenarios=SCENARIOS.replace("get", "gte")
    )
    files = [Path(problem.place.file).relative_to(tmp_path).as_posix() for problem in problems if problem.place]
    assert set(files) == {"fam/server.yaml", "slow/server.yaml", "scenarios.yaml"}
    assert files == sorted(files)


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ("runtime: native\n", "", "`runtime` is missing, here and at the top", "`runtime: native`"),
        ("  run: [make, all]\n", "", "`build.run` is missing", "`run: [cargo"),
        ("  inputs: [src/**]\n", "  inputs: []\n", "must have at least 1", "files and globs"),
        ("inputs: [src/**]", "inputs: [.]", "`.` is a folder", "write `**`"),
        ("inputs: [src/**]", "inputs: [../..]", "`../..` is a folder", "write `../../**`"),
        ("inputs: [src/**]", "inputs: [src/..]", "`src/..` is a folder", "write `src/../**`"),
        ("inputs: [src/**]", "inputs: ['']", "is empty", "name a file"),
        ("inputs: [src/**]", "inputs: [' ']", "is empty", "name a file"),
        ("inputs: [src/**]", "inputs: [/srv/a]", "`/srv/a` is an absolute path", "relative to the build folder"),
        ("inputs: [src/**]", r'inputs: ["a\0b"]', r"'a\x00b' has an invisible character", "as `ls` shows it"),
        ("inputs: [src/**]", "inputs: [src**]", "`src**`: `**` stands alone", "like `src/**`"),
        ("outputs: [out/server]", "outputs: ['']", "is empty", "name a file"),
        ("outputs: [out/server]", "outputs: [/out]", "`/out` is an absolute path", "relative to the build folder"),
        ("[make, all]", "make all", "must be a list, not `make all`", "such as `[cargo, build, --release]`"),
        ("default: 128", "default: 64", "the default `64` is not among the values", "choose one of: 1, 128"),
        ("default: 128", "default: true", "the default `true` is not among the values", "choose one of: 1, 128"),
        ("values: [1, 128]", "values: [1, 128, 1]", "a value is given twice", "remove one"),
        ("values: [1, 128]", "values: [128, a/b]", "`a/b` is not safe in a file name", "use letters"),
        ("  routes: {about", "  port: {about", "`port` is filled in by the lab", "another name"),
        ("--log,", '"{lgo}",', "`{lgo}` is not a placeholder that the lab fills in", "did you mean `log`?"),
        ('"{log}"', "x", "the option `log` never reaches the server", "use `{log}`"),
        ("    about: no framework\n", "", "`about` is missing", "add it"),
        ("  plain:", "  Plain:", "`Plain` does not have", "lower-case letters"),
        ("within: 30s", "within: 30", "`30` has no unit", "write `30s`"),
        ("within: 30s", "within: 0s", "must be at least 1ns", "always fails"),
        ("path: /path0", "path: path0", "`path0` does not have", "such as `/path0`"),
        ("hint: install make", "hnit: install make", "`hint` is missing", "add it"),
    ],
)
def test_what_is_wrong_with_a_family(tmp_path: Path, old: str, new: str, says: str, hint: str) -> None:
    assert old in FAMILY
    problems = problems_of(tmp_path, fam=FAMILY.replace(old, new))
    assert any(says in problem.message and hint in problem.hint for problem in problems), [str(p) for p in problems]
    assert all(problem.place and problem.place.line for problem in problems)


def test_a_server_that_does_not_get_its_port(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, fam=FAMILY.replace('"{port}"', '"8080"'))
    assert {problem.message for problem in problems} == {"the server does not get its port"}
    assert [problem.place.field for problem in problems if problem.place] == [
        "servers.plain.start.command",
        "servers.layered.start.command",
    ]


def test_a_number_in_the_environment_has_to_be_quoted(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, fam=FAMILY.replace('"{routes}"]}', '"{routes}"], env: {THREADS: 4}}'))
    assert problem.hint == 'quote it to make it text: "4"'


@pytest.mark.parametrize("make", [lambda _: None, lambda path: path.write_text("x"), lambda path: path.mkdir()])
def test_where_no_catalogue_is(tmp_path: Path, make: object) -> None:
    folder = tmp_path / "nothing"
    assert callable(make)
    make(folder)
    with pytest.raises(UsageError) as caught:
        load_catalogue(folder)
    assert "server.yaml" in caught.value.hint


def test_a_family_folder_with_a_name_that_no_family_has(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, **{"Two Words": FAMILY})
    assert "`Two Words` cannot be a family" in problem.message


def test_the_shipped_catalogue_has_its_scenarios() -> None:
    catalogue = load_catalogue(Path(__file__).parents[3] / "catalogue")
    assert list(catalogue.scenarios) == [
        "SimpleGet",
        "SimpleGetMulti",
        "PostBytes",
        "PostString",
        "PostLongBytes",
        "PostLongString",
        "Timestamp",
        "Petstore",
        "MathPlus",
        "MathPlusUntyped",
        "Chat",
        "Echo",
        "Pushes",
    ]
    assert catalogue.scenarios["Timestamp"].clock_resolution_ns == 1
    for scenario in catalogue.scenarios.values():
        body = scenario.request.body
        expected = scenario.request.expect.body
        if scenario.request.timestamp is not None:
            continue  # nobody knows beforehand what the clock will be
        if scenario.request.stream is not None or scenario.request.websocket is not None:
            continue  # messages, which are not named after their path
        if scenario.name in ("Petstore", "MathPlus", "MathPlusUntyped"):
            continue  # their answers are fixed, and checked by the tests of their contracts
        assert expected is not None
        if body is not None:
            assert expected == f"{scenario.request.path.removeprefix('/')} {len(body.content())}"
        else:
            assert expected == scenario.request.path.removeprefix("/")
