"""Builds of several servers by one command: a failure costs one server, and no old output passes for new."""

from pathlib import Path

import pytest

from redline.errors import BuildError, UsageError
from redline.launching.builds import Builds
from redline.linux import procfs
from redline.model import Build, ServerEntry, Start, Tool
from redline.ports import Building, BuildOutcome
from redline.suite.catalogue import read_family
from tests.fakes.servers.entries import eventually

SCRIPT = """\
#!/bin/sh
# As a build has to be: every target is tried; each that fails is reported by name and leaves no outputs.
echo "$*" >> runs
status=0
for target in "$@"; do
  mkdir -p "$target/classes"
  if reason=$(cat "$target/broken" 2>/dev/null); then
    echo "$reason" | sed "s/^/$target: /"
    status=1
  else
    echo "compiled $target"
    cp "$target/source" "$target/classpath"
  fi
done
exit $status
"""


class Project:
    """A build of three targets in a folder, whose script notes the targets with which it is run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "catalogue/scala"
        for name in ("one", "two", "three", "shared"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "source").write_text(f"{name} 1")
        self.replace_script(SCRIPT)

    def replace_script(self, text: str) -> None:
        script = self.folder / "build"
        script.write_text(text)
        script.chmod(0o755)

    def builds(self) -> Builds:
        return Builds(self.root / "catalogue", self.root / "cache")

    def entry(self, target: str, *, outputs: tuple[str, ...] = ("{}/classpath", "{}/classes")) -> ServerEntry:
        return ServerEntry(
            name=f"family-{target}.server",
            about="",
            runtime="native",
            family_folder=f"family-{target}",
            build=Build(
                run=("./build",),
                target=target,
                folder="../scala",
                inputs=(f"{target}/source", "shared/**"),
                outputs=tuple(output.format(target) for output in outputs),
            ),
            start=Start(command=("{folder}/out", "{port}")),
        )

    def all(self) -> list[ServerEntry]:
        return [self.entry(target) for target in ("one", "two", "three")]

    def build(self, *entries: ServerEntry) -> BuildOutcome:
        """Build with a launcher whose only memory is its cache; all servers by default."""
        return self.builds().build(entries or self.all(), lambda _building: None)

    def break_target(self, target: str, *reasons: str) -> None:
        (self.folder / target / "broken").write_text("".join(f"{reason}\n" for reason in reasons))

    @property
    def runs(self) -> list[str]:
        file = self.folder / "runs"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_one_command_builds_all_targets_and_nothing_is_built_again(project: Project) -> None:
    first = project.build()
    assert set(first.hashes) == {"family-one.server", "family-two.server", "family-three.server"}
    assert len(set(first.hashes.values())) == 3
    assert not first.failures
    assert set(first.took_ns) == set(first.hashes)
    again = project.build()
    assert again.hashes == first.hashes
    assert again.took_ns == {}
    assert project.runs == ["one three two"]


def test_what_is_built_is_listed_with_all_names_and_kept_in_one_log(project: Project) -> None:
    events: list[Building] = []
    project.builds().build(project.all(), events.append)
    assert {building.servers for building in events} == {tuple(entry.name for entry in project.all())}
    assert [building.line for building in events] == ["", "compiled one", "compiled three", "compiled two"]
    (log,) = (project.root / "cache/builds/logs").iterdir()
    assert log.name.startswith("scala-")
    assert log.read_text() == "compiled one\ncompiled three\ncompiled two\n"


def test_a_changed_source_builds_only_its_target_and_a_shared_one_all(project: Project) -> None:
    first = project.build()
    (project.folder / "two/source").write_text("two 2")
    second = project.build()
    assert project.runs[1:] == ["two"]
    assert [name for name in first.hashes if first.hashes[name] != second.hashes[name]] == ["family-two.server"]
    (project.folder / "shared/source").write_text("shared 2")
    project.build()
    assert project.runs[2:] == ["one three two"]


def test_a_target_that_fails_costs_one_server_and_says_why(project: Project) -> None:
    project.break_target("two", "could not be resolved: org.example:adapter:1.0")
    outcome = project.build()
    assert set(outcome.hashes) == {"family-one.server", "family-three.server"}
    error = outcome.failures["family-two.server"]
    message = "building family-two.server failed: could not be resolved: org.example:adapter:1.0"
    assert error.problems[0].message == message
    assert str(project.root / "cache/builds/logs/scala-") in error.hint
    with pytest.raises(BuildError, match="adapter"):
        outcome.hash_of("family-two.server")
    assert project.build().failures.keys() == {"family-two.server"}
    assert project.runs == ["one three two", "two"]


def test_several_reasons_are_listed_each_on_a_line(project: Project) -> None:
    project.break_target("one", "first\x1b reason", "second reason")
    message = project.build().failures["family-one.server"].problems[0].message
    assert message == "building family-one.server failed:\n    first reason\n    second reason"


def test_a_target_that_failed_and_is_mended_is_built(project: Project) -> None:
    project.break_target("one", "wrong")
    project.build()
    (project.folder / "one/broken").unlink()
    assert not project.build().failures
    assert project.runs == ["one three two", "one"]


def test_old_outputs_of_a_target_that_fails_do_not_count(project: Project) -> None:
    project.build()
    (project.folder / "one/source").write_text("one 2")
    project.break_target("one", "does not compile")
    assert set(project.build().failures) == {"family-one.server"}
    assert not (project.folder / "one/classpath").exists()
    assert (project.folder / "one/classes").is_dir()
    assert project.builds().availability(project.entry("one")).state == "not built"
    # Not even if the source is again as when the old outputs were made.
    (project.folder / "one/source").write_text("one 1")
    assert project.builds().availability(project.entry("one")).state == "not built"


def test_folders_alone_do_not_prove_that_a_target_succeeded(project: Project) -> None:
    project.break_target("one", "does not compile")
    (project.folder / "one/classes").mkdir()
    assert set(project.build(project.entry("one", outputs=("{}/classes",))).failures) == {"family-one.server"}


def test_a_command_that_fails_and_names_no_target_shows_its_end_for_those_without_outputs(project: Project) -> None:
    project.replace_script("#!/bin/sh\ncp one/source one/classpath; mkdir -p one/classes; echo no memory left; exit 7")
    outcome = project.build()
    assert set(outcome.hashes) == {"family-one.server"}
    for name in ("family-two.server", "family-three.server"):
        assert outcome.failures[name].problems[0].message == f"building {name} failed with code 7:\n    no memory left"


def test_a_command_that_succeeds_and_leaves_nothing(project: Project) -> None:
    project.replace_script("#!/bin/sh\ntrue")
    message = project.build().failures["family-one.server"].problems[0].message
    assert "succeeded but left no one/classpath, one/classes in" in message


def test_a_command_that_cannot_be_run_fails_all(project: Project) -> None:
    (project.folder / "build").unlink()
    outcome = project.build()
    assert len(outcome.failures) == 3
    assert len(set(outcome.failures.values())) == 1
    assert "./build could not be run" in str(outcome.failures["family-one.server"])


def test_a_server_that_cannot_be_built_here_does_not_hold_the_others_back(project: Project) -> None:
    lacking = project.entry("one")
    tool = Tool(command="no-such-tool-of-redline", hint="install it")
    lacking = lacking.model_copy(update={"build": lacking.catalogue_build.model_copy(update={"needs": (tool,)})})
    outcome = project.build(lacking, project.entry("two"))
    assert outcome.failures["family-one.server"].hint == "install it"
    assert set(outcome.hashes) == {"family-two.server"}
    assert project.runs == ["two"]


def test_an_output_that_is_an_input_is_refused_and_not_removed(project: Project) -> None:
    outcome = project.build(project.entry("one", outputs=("one/../one/source",)), project.entry("two"))
    assert "among its `build.inputs` and its `build.outputs`" in str(outcome.failures["family-one.server"])
    assert (project.folder / "one/source").read_text() == "one 1"
    assert set(outcome.hashes) == {"family-two.server"}


def test_output_that_is_no_text_does_not_end_a_build(project: Project) -> None:
    project.replace_script(SCRIPT.replace('echo "compiled', "printf '\\377\\n'; echo \"compiled"))
    assert not project.build().failures


def test_servers_of_one_target_share_its_build(project: Project) -> None:
    one = project.entry("one")
    outcome = project.build(one, one.model_copy(update={"name": "family-one.other"}))
    assert outcome.hashes["family-one.server"] == outcome.hashes["family-one.other"]
    assert project.runs == ["one"]


def test_an_interrupt_leaves_nothing_that_counts_as_built(project: Project) -> None:
    project.build(project.entry("three"))
    project.replace_script(
        "#!/bin/sh\ncp one/source one/classpath; mkdir -p one/classes\nsleep 600 & echo $! > pid; echo go; wait"
    )

    def interrupt(building: Building) -> None:
        if building.line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project.builds().build(project.all(), interrupt)
    states = [project.builds().availability(entry).state for entry in project.all()]
    assert states == ["not built", "not built", "built"]
    pid = int((project.folder / "pid").read_text())

    def ended() -> bool:
        stat = procfs.read_stat(pid)
        return stat is None or stat.state == "Z"

    assert eventually(ended)


FAMILY = """\
runtime: jvm
build: {{run: [./build], folder: ../scala, target: {target}}}
servers:
  vanilla:
    about: one
    build: {{inputs: [one/source], outputs: [one/classpath]}}
    start: {{command: [java, "{{port}}"]}}
  tapir:
    about: two
    build: {{target: two, inputs: [two/source], outputs: [two/classpath]}}
    start: {{command: [java, "{{port}}"]}}
"""


def test_a_server_says_its_target_or_takes_its_familys() -> None:
    entries = read_family(FAMILY.format(target="one"), "server.yaml", "http4s")
    assert {name: entry.catalogue_build.target for name, entry in entries.items()} == {
        "http4s.vanilla": "one",
        "http4s.tapir": "two",
    }
    assert {entry.build_folder for entry in entries.values()} == {"http4s/../scala"}


@pytest.mark.parametrize("target", ["--help", '"a b"', '""'])
def test_a_target_that_would_be_no_argument_is_refused(target: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_family(FAMILY.format(target=target), "server.yaml", "http4s")
    place = caught.value.problems[0].place
    assert place is not None
    assert place.field == "build.target"
