"""Builds: done once for each content, reported with reasons, safe beside each other."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redline.errors import BuildError, LaunchError
from redline.model import Build, ServerEntry, Start, Tool
from redline.plugins.launchers import stamps
from redline.plugins.launchers.builds import Availability, Builds
from redline.plugins.linux import procfs
from redline.ports import Building
from tests.fakes.servers.entries import eventually

NOTED = "date +%N >> count; cp in.txt out; echo made; echo done"


class Family:
    """A family of one server, whose build appends to `count` each time it runs."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.catalogue = folder / "catalogue"
        self.folder = self.catalogue / "fake"
        (self.folder / "src/deep").mkdir(parents=True)
        (self.folder / "in.txt").write_text("one")
        (self.folder / "src/deep/more.txt").write_text("two")

    def builds(self) -> Builds:
        return Builds(self.catalogue, self.root / "cache")

    def entry(
        self,
        script: str = NOTED,
        name: str = "fake.one",
        inputs: tuple[str, ...] = ("in.txt", "src/**"),
        outputs: tuple[str, ...] = ("out",),
        needs: tuple[Tool, ...] = (),
        start_needs: tuple[Tool, ...] = (),
    ) -> ServerEntry:
        return ServerEntry(
            name=name,
            about="",
            runtime="native",
            family_folder="fake",
            build=Build(run=("sh", "-c", script), inputs=inputs, outputs=outputs, needs=needs),
            start=Start(command=("{folder}/out", "{port}"), needs=start_needs),
        )

    @property
    def times_built(self) -> int:
        count = self.folder / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


def build(family: Family, entry: ServerEntry) -> str:
    """By a launcher that remembers nothing but its cache."""
    return family.builds().build([entry], lambda _building: None).hash_of(entry.name)


def test_a_build_is_done_once_and_its_output_is_streamed_and_kept(family: Family) -> None:
    told: list[Building] = []
    first = family.builds().build([family.entry()], told.append).hash_of("fake.one")
    assert [building.line for building in told] == ["", "made", "done"]
    assert {building.servers for building in told} == {("fake.one",)}
    assert (family.root / "cache/builds/logs/fake.one.log").read_text() == "made\ndone\n"
    assert build(family, family.entry()) == first
    assert family.times_built == 1


def test_content_command_and_names_of_inputs_make_the_hash(family: Family) -> None:
    hashes = [build(family, family.entry())]
    (family.folder / "in.txt").write_text("other")
    hashes.append(build(family, family.entry()))
    (family.folder / "src/deep/more.txt").rename(family.folder / "src/deep/moved.txt")
    hashes.append(build(family, family.entry()))
    (family.folder / "src/deep/.hidden").write_text("")
    hashes.append(build(family, family.entry()))
    hashes.append(build(family, family.entry(NOTED + "; true")))
    assert len(set(hashes)) == 5
    assert family.times_built == 5


def test_the_time_of_an_input_does_not_matter(family: Family) -> None:
    build(family, family.entry())
    os.utime(family.folder / "in.txt", (1, 1))
    build(family, family.entry())
    assert family.times_built == 1


def test_an_output_that_is_gone_or_changed_is_built_again(family: Family) -> None:
    build(family, family.entry())
    (family.folder / "out").unlink()
    build(family, family.entry())
    (family.folder / "out").write_text("by hand")
    build(family, family.entry())
    assert family.times_built == 3
    assert (family.folder / "out").read_text() == "one"


def test_servers_of_one_family_that_are_built_together_are_built_once(family: Family) -> None:
    first, second = family.entry(name="fake.one"), family.entry(name="fake.two")
    assert build(family, first) == build(family, second)
    assert family.times_built == 1


def test_servers_of_one_family_with_commands_of_their_own_keep_their_builds(family: Family) -> None:
    first = family.entry("date +%N >> count; touch a", "fake.a", outputs=("a",))
    second = family.entry("date +%N >> count; touch b", "fake.b", outputs=("b",))
    for _ in range(2):
        assert build(family, first) != build(family, second)
    assert family.times_built == 2


def test_a_damaged_stamp_means_not_built(family: Family) -> None:
    build(family, family.entry())
    for stamp in (family.root / "cache/builds").glob("*.json"):
        stamp.write_text("{half")
    build(family, family.entry())
    assert family.times_built == 2


def test_a_failing_build_shows_its_end_and_where_all_of_it_is(family: Family) -> None:
    script = "for i in $(seq 40); do echo line $i; done; echo broken >&2; exit 3"
    with pytest.raises(BuildError, match="failed with code 3") as caught:
        build(family, family.entry(script))
    assert "line 40\n    broken" in str(caught.value)
    assert "line 20" not in str(caught.value)
    assert str(family.root / "cache/builds/logs/fake.one.log") in caught.value.hint
    assert family.builds().availability(family.entry(script)) == Availability("not built")


def test_a_missing_tool_is_reported_with_its_hint_and_nothing_is_run(family: Family) -> None:
    tool = Tool(command="no-such-tool-of-redline", version=("no-such-tool-of-redline",), hint="install it")
    for entry in (family.entry(needs=(tool,)), family.entry(start_needs=(tool,))):
        with pytest.raises(BuildError, match="no-such-tool-of-redline is not installed") as caught:
            build(family, entry)
        assert caught.value.hint == "install it"
        available = family.builds().availability(entry)
        assert available.state == "cannot be built"
        assert available.reason == "no-such-tool-of-redline is not installed; install it"
    assert family.times_built == 0


def test_a_build_that_leaves_no_output(family: Family) -> None:
    with pytest.raises(BuildError, match="left no out in"):
        build(family, family.entry("true"))


def test_a_build_command_that_does_not_exist(family: Family) -> None:
    entry = family.entry()
    entry = entry.model_copy(update={"build": entry.build.model_copy(update={"run": ("no-such-command",)})})
    with pytest.raises(BuildError, match="no-such-command could not be run"):
        build(family, entry)


def test_a_glob_that_matches_nothing_is_an_error(family: Family) -> None:
    with pytest.raises(BuildError, match=r"'sources/\*\*'"):
        build(family, family.entry(inputs=("sources/**",)))


def test_a_build_that_writes_into_its_inputs_is_refused(family: Family) -> None:
    for name in ("in.txt", "src/deep/more.txt"):
        os.utime(family.folder / name, (1, 1))
    with pytest.raises(BuildError, match=r"its inputs changed while it was built: src/deep/made\.class\n") as caught:
        build(family, family.entry("date +%N > src/deep/made.class; touch out"))
    assert "`build.inputs`" in caught.value.hint
    assert family.builds().availability(family.entry()) == Availability("not built")


def test_a_missing_folder_is_an_error(family: Family) -> None:
    shutil.rmtree(family.folder)
    assert family.builds().availability(family.entry()).state == "cannot be built"


def test_availability_follows_the_inputs_and_builds_nothing(family: Family) -> None:
    assert family.builds().availability(family.entry()) == Availability("not built")
    build(family, family.entry())
    assert family.builds().availability(family.entry()) == Availability("built")
    (family.folder / "in.txt").write_text("changed")
    assert family.builds().availability(family.entry()) == Availability("not built")
    assert family.times_built == 1


def test_a_build_that_changes_during_a_run_is_not_measured(family: Family) -> None:
    builds = family.builds()
    built = builds.build([family.entry()], lambda _building: None).hash_of("fake.one")
    assert builds.find(family.entry()).hash == built
    (family.folder / "out").write_text("another program")
    with pytest.raises(LaunchError, match="have changed since"):
        builds.find(family.entry())


def make_tool(folder: Path, says: str, code: int = 0) -> Tool:
    folder.mkdir(exist_ok=True)
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\ndate +%N >> {folder}/asked\necho '{says}'\necho 'second line'\nexit {code}\n")
    path.chmod(0o755)
    return Tool(command=str(path), version=(str(path), "--version"), hint="get the tool")


def test_another_version_of_a_tool_is_another_build(family: Family, tmp_path: Path) -> None:
    first = build(family, family.entry(needs=(make_tool(tmp_path / "bin", "tool 1.0"),)))
    assert build(family, family.entry(needs=(make_tool(tmp_path / "bin", "tool 1.0.1"),))) != first


def test_a_tool_is_asked_for_its_version_only_when_it_has_changed(family: Family, tmp_path: Path) -> None:
    entry = family.entry(needs=(make_tool(tmp_path / "bin", "tool 1.0"),))
    for _ in range(3):
        build(family, entry)
    assert len((tmp_path / "bin/asked").read_text().splitlines()) == 1


def test_a_tool_behind_a_link_of_another_name_is_asked_by_every_lab(family: Family, tmp_path: Path) -> None:
    tool = make_tool(tmp_path / "bin", "tool 1.0")
    link = tmp_path / "bin/linked"
    link.symlink_to(tool.command)
    entry = family.entry(needs=(Tool(command=str(link), version=(str(link),), hint=""),))
    builds = family.builds()
    builds.build([entry], lambda _building: None)
    builds.build([entry], lambda _building: None)
    assert len((tmp_path / "bin/asked").read_text().splitlines()) == 1
    build(family, entry)
    assert len((tmp_path / "bin/asked").read_text().splitlines()) == 2


def test_a_tool_is_asked_again_when_the_java_that_it_may_run_on_has_changed(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = family.entry(needs=(make_tool(tmp_path / "bin", "tool 1.0"),))
    monkeypatch.setenv("PATH", f"{tmp_path / 'java'}:{os.environ['PATH']}")
    (tmp_path / "java").mkdir()
    for text in ("#!/bin/sh\n", "#!/bin/sh\n# another\n"):
        (tmp_path / "java/java").write_text(text)
        (tmp_path / "java/java").chmod(0o755)
        build(family, entry)
        build(family, entry)
    assert len((tmp_path / "bin/asked").read_text().splitlines()) == 2


def test_a_line_that_does_not_end_is_told_in_parts(family: Family) -> None:
    told: list[Building] = []
    script = "head -c 200000 /dev/zero | tr '\\0' x; touch out"
    family.builds().build([family.entry(script)], told.append)
    assert sum(len(building.line) for building in told) == 200_000
    assert max(len(building.line) for building in told) == 65_536


def test_a_file_that_is_made_from_is_read_once_for_all_builds(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago_ns = 10**18
    for name in ("in.txt", "src/deep/more.txt"):
        os.utime(family.folder / name, ns=(long_ago_ns, long_ago_ns))
    read: list[str] = []
    read_bytes = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    lab = family.builds()
    for name in ("fake.one", "fake.two"):
        lab.availability(family.entry(name=name))
    (family.folder / "in.txt").write_text("another")
    lab.availability(family.entry())
    assert sorted(name for name in read if name.endswith(".txt")) == ["in.txt", "in.txt", "more.txt"]


def test_a_tool_that_cannot_tell_its_version(family: Family, tmp_path: Path) -> None:
    entry = family.entry(needs=(make_tool(tmp_path / "bin", "no toolchain", code=4),))
    with pytest.raises(BuildError, match="failed with code 4 and said: second line") as caught:
        build(family, entry)
    assert caught.value.hint == "get the tool"


def test_the_runtime_says_its_version(family: Family, tmp_path: Path) -> None:
    entry = family.entry(start_needs=(make_tool(tmp_path / "bin", "runtime 21"),))
    build(family, entry)
    assert family.builds().find(entry).runtime_version == "runtime 21"
    assert family.builds().build([entry], lambda _building: None).runtimes == {entry.name: "runtime 21"}


def test_a_broken_runtime_is_known_before_anything_is_built(family: Family, tmp_path: Path) -> None:
    entry = family.entry(start_needs=(make_tool(tmp_path / "bin", "no JVM here", code=1),))
    with pytest.raises(BuildError, match="failed with code 1") as caught:
        build(family, entry)
    assert caught.value.hint == "get the tool"
    assert family.times_built == 0
    assert family.builds().availability(entry).state == "cannot be built"


def test_a_runtime_that_breaks_during_a_run_does_not_end_it(family: Family, tmp_path: Path) -> None:
    entry = family.entry(start_needs=(make_tool(tmp_path / "bin", "runtime 21"),))
    lab = family.builds()
    lab.build([entry], lambda _building: None)
    make_tool(tmp_path / "bin", "no JVM here", code=1)
    assert lab.find(entry).runtime_version == "runtime 21"
    with pytest.raises(LaunchError, match="failed with code 1"):
        family.builds().find(entry)


def test_an_interrupt_ends_the_build_and_what_it_started(family: Family) -> None:
    def interrupt(building: Building) -> None:
        if building.line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        family.builds().build([family.entry("sleep 600 & echo $! > pid; echo go; wait; touch out")], interrupt)
    pid = int((family.folder / "pid").read_text())

    def ended() -> bool:
        stat = procfs.read_stat(pid)
        return stat is None or stat.state == "Z"

    assert eventually(ended)


def test_labs_beside_each_other_build_once(family: Family) -> None:
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from redline.model import ServerEntry
        from redline.plugins.launchers.builds import Builds
        builds = Builds(Path(sys.argv[1]), Path(sys.argv[2]))
        entry = ServerEntry.model_validate_json(sys.argv[3])
        print(builds.build([entry], lambda _building: None).hash_of(entry.name))
    """)
    entry = family.entry("sleep 0.5; " + NOTED).model_dump_json()
    command = [sys.executable, "-c", script, str(family.catalogue), str(family.root / "cache"), entry]
    labs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    hashes = {lab.communicate(timeout=60)[0] for lab in labs}
    assert len(hashes) == 1
    assert hashes != {""}
    assert family.times_built == 1


def test_a_cache_that_cannot_be_written(family: Family) -> None:
    (family.root / "cache").write_text("a file")
    with pytest.raises(BuildError, match="cannot be written"):
        build(family, family.entry())


@pytest.mark.parametrize("blocked", ["logs", "locks"])
def test_a_part_of_the_cache_that_cannot_be_written(family: Family, blocked: str) -> None:
    (family.root / "cache/builds").mkdir(parents=True)
    (family.root / "cache/builds" / blocked).write_text("a file in the way")
    with pytest.raises(BuildError, match=r"cache .* cannot be written"):
        build(family, family.entry())


def test_a_stamp_that_cannot_be_written(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(stamps, "replace_text", full)
    with pytest.raises(BuildError, match="No space left on device") as caught:
        build(family, family.entry())
    assert "the disk is full" in caught.value.hint


def test_a_disk_that_is_full_of_the_builds_output_is_not_told_as_a_missing_command(family: Family) -> None:
    logs = family.root / "cache/builds/logs"
    logs.mkdir(parents=True)
    (logs / "fake.one.log").symlink_to("/dev/full")
    with pytest.raises(BuildError, match="No space left on device") as caught:
        build(family, family.entry())
    assert "could not be run" not in str(caught.value)
    assert "the disk is full" in caught.value.hint
