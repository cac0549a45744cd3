"""Builds: done once per content, reported with reasons, and safe in parallel."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redline.errors import BuildError, LaunchError
from redline.launching.builds import Availability, hash_of_outputs
from redline.linux import procfs
from redline.ports import Building
from tests.fakes.servers.entries import eventually
from tests.fakes.servers.families import NOTED, Family, build


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


def test_a_build_is_done_once_and_its_output_is_streamed_and_kept(family: Family) -> None:
    events: list[Building] = []
    first = family.builds().build([family.entry()], events.append).hash_of("fake.one")
    assert [building.line for building in events] == ["", "made", "done"]
    assert {building.servers for building in events} == {("fake.one",)}
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
    assert caught.value.reason == "with code 3: broken"
    assert family.builds().availability(family.entry(script)) == Availability("not built")


def test_the_line_that_names_the_error_is_shown_first_where_it_is_far_up(family: Family) -> None:
    script = "echo 'in.c:1:2: error: no such thing'; for i in $(seq 40); do echo line $i; done; exit 3"
    with pytest.raises(BuildError) as caught:
        build(family, family.entry(script))
    assert "failed with code 3:\n    in.c:1:2: error: no such thing\n    …\n    line 26\n" in str(caught.value)
    assert caught.value.reason == "with code 3: in.c:1:2: error: no such thing"


def test_a_folder_from_which_nothing_may_be_executed(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo './tool: Permission denied'; exit 126"
    with pytest.raises(BuildError, match="failed with code 126:"):
        build(family, family.entry(script))
    monkeypatch.setattr("redline.launching.builds.noexec_mount", lambda _path: "/some is mounted noexec")
    with pytest.raises(BuildError, match="failed with code 126, and /some is mounted noexec:"):
        build(family, family.entry(script))


def test_a_build_that_leaves_no_output(family: Family) -> None:
    with pytest.raises(BuildError, match="left no out in"):
        build(family, family.entry("true"))


def test_a_build_command_that_does_not_exist(family: Family) -> None:
    entry = family.entry()
    entry = entry.model_copy(update={"build": entry.catalogue_build.model_copy(update={"run": ("no-such-command",)})})
    with pytest.raises(BuildError, match="no-such-command could not be run: there is no no-such-command on the PATH"):
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


def test_a_line_that_does_not_end_is_reported_in_parts(family: Family) -> None:
    events: list[Building] = []
    script = "head -c 200000 /dev/zero | tr '\\0' x; touch out"
    family.builds().build([family.entry(script)], events.append)
    assert sum(len(building.line) for building in events) == 200_000
    assert max(len(building.line) for building in events) == 65_536


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
        from redline.launching.builds import Builds
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


@pytest.mark.parametrize("named", ["src", "src/", "src/deep"])
def test_the_name_of_a_folder_is_no_glob_of_its_files(family: Family, named: str) -> None:
    with pytest.raises(BuildError, match=r"no file in .* matches it") as caught:
        build(family, family.entry(inputs=(named,)))
    assert f"`{named.rstrip('/')}/**`" in caught.value.hint


def test_a_folder_and_a_file_need_not_be_utf_8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"odd \xff")
    family = Family(tmp_path / odd)
    (family.folder / "src" / odd).write_text("")
    entry = family.entry(f"{NOTED}; mkdir -p made; cp out made/$(printf '\\377')", outputs=("out", "made"))
    first = build(family, entry)
    assert build(family, entry) == first
    assert family.times_built == 1
    assert hash_of_outputs(family.builds().find(entry))
