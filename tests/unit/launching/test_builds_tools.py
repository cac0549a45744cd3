"""Tools of builds and runtimes of servers: their versions, and what happens without them."""

import os
from pathlib import Path

import pytest

from redline.errors import BuildError, LaunchError
from redline.model import Tool
from tests.fakes.servers.families import Family, build


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


def make_tool(folder: Path, says: str, code: int = 0) -> Tool:
    folder.mkdir(exist_ok=True)
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\ndate +%N >> {folder}/asked\necho '{says}'\necho 'second line'\nexit {code}\n")
    path.chmod(0o755)
    return Tool(command=str(path), version=(str(path), "--version"), hint="get the tool")


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


def test_a_tool_that_cannot_report_its_version(family: Family, tmp_path: Path) -> None:
    entry = family.entry(needs=(make_tool(tmp_path / "bin", "no toolchain", code=4),))
    with pytest.raises(BuildError, match="failed with code 4 and said: second line") as caught:
        build(family, entry)
    assert caught.value.hint == "get the tool"


def test_the_runtime_says_its_version(family: Family, tmp_path: Path) -> None:
    entry = family.entry(start_needs=(make_tool(tmp_path / "bin", "runtime 21"),))
    build(family, entry)
    assert family.builds().find(entry).runtime_version == "runtime 21"
    assert family.builds().build([entry], lambda _building: None).runtimes == {entry.name: "runtime 21"}


def test_options_that_a_jvm_picks_up_are_no_version(family: Family, tmp_path: Path) -> None:
    java = make_tool(tmp_path / "bin", "Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk 21")
    entry = family.entry(start_needs=(java,))
    build(family, entry)
    assert family.builds().find(entry).runtime_version == "openjdk 21"


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
