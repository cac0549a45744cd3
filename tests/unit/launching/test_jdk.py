"""Servers that are started with the `java` of their variant's JDK."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from redline.errors import BuildError, LaunchError
from redline.launching.jdks import Jdk, Jdks, read_home
from redline.launching.process import ProcessLauncher
from redline.model import Option, OptionValue, Variant
from redline.model.jvm import FlagSet
from redline.ports import Building, Launch, Placement
from tests.fakes.servers.entries import SCRIPT, make_catalogue, server

FREE = Placement()


def fake_jdk(home: Path, version: str) -> Jdk:
    """A JDK whose `java` runs the small server whatever its arguments."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin/java"
    java.write_text(f'#!/bin/sh\nfor port; do :; done\nexec {sys.executable} -I -S {SCRIPT} "$port" healthy\n')
    java.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Eclipse Adoptium"\nSEMANTIC_VERSION="{version}"\n')
    found = read_home(home)
    assert found is not None
    return found


def asking(jdk: OptionValue, values: tuple[OptionValue, ...] = (17, 21)) -> Variant:
    plain = server(command=("{java}", "-version", "{port}"), options={"jdk": 21})
    options = {"jdk": Option(values=values, default=values[-1])}
    return Variant(entry=plain.catalogued.model_copy(update={"options": options}), options={"jdk": jdk})


def launcher(tmp_path: Path, jdks: Jdks) -> ProcessLauncher:
    return ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache", jdks)


def test_it_is_fetched_with_the_build_and_named_in_the_recording(tmp_path: Path) -> None:
    fetched: list[int] = []

    def fetch(feature: int, folder: Path, progress: object) -> Jdk:
        assert callable(progress)
        progress(f"fetching JDK {feature}")
        fetched.append(feature)
        return fake_jdk(folder / f"temurin-{feature}", f"{feature}.0.8+9")

    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: (), fetch=fetch))
    lines: list[Building] = []
    outcome = under_test.build([asking(17), asking(21)], lines.append)
    assert outcome.failures == {}
    assert fetched == [17, 21]
    assert Building(("fake.healthy",), "fetching JDK 17") in lines
    with under_test.running(Launch(asking(17), FREE, tmp_path / "server.log")) as running:
        assert running.facts.command[0] == str(tmp_path / "cache/jdks/temurin-17/bin/java")
        assert running.facts.command[1].startswith("-Xlog:gc,")
        assert running.facts.command[2] == "-version"
        assert running.facts.runtime_version == "Temurin 17.0.8+9 (jdk 17)"
    assert fetched == [17, 21]


def test_the_build_reports_what_the_recordings_will(tmp_path: Path) -> None:
    """So that a resumed run can refuse another JDK, which is no part of the build itself."""
    older, newer = fake_jdk(tmp_path / "older", "21.0.8+9"), fake_jdk(tmp_path / "newer", "21.0.9+10")
    runtimes = {}
    for jdk in (older, newer):
        under_test = launcher(tmp_path / jdk.name, Jdks(tmp_path / "cache", machine=partial(tuple, [jdk])))
        outcome = under_test.build([asking(21), server("exits")], lambda _line: None)
        with under_test.running(Launch(asking(21), FREE, tmp_path / "server.log")) as running:
            assert outcome.runtimes == {"fake.healthy": running.facts.runtime_version, "fake.exits": ""}
        runtimes[outcome.hashes["fake.healthy"]] = outcome.runtimes["fake.healthy"]
    assert list(runtimes.values()) == ["Temurin 21.0.9+10 (jdk 21)"], "the same build, another JDK"


def test_only_the_variants_that_lack_it_fail(tmp_path: Path) -> None:
    def fetch(feature: int, _folder: Path, _progress: object) -> Jdk:
        raise BuildError(f"there is no JDK {feature}", hint="install it")

    here = fake_jdk(tmp_path / "home", "21.0.8+9")
    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: (here,), fetch=fetch))
    outcome = under_test.build([asking(17), asking(21)], lambda _line: None)
    assert list(outcome.hashes) == ["fake.healthy"]
    assert list(outcome.failures) == ["fake.healthy+jdk=17"]
    with (
        pytest.raises(LaunchError, match=r"fake\.healthy\+jdk=17: there is no JDK 17 on this machine"),
        under_test.running(Launch(asking(17), FREE, tmp_path / "server.log")),
    ):
        pass


def test_a_jdk_that_the_server_does_not_run_on_is_refused_however_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer, older = fake_jdk(tmp_path / "newer", "25.0.1+8"), fake_jdk(tmp_path / "older", "17.0.8+9")
    monkeypatch.setenv("PATH", f"{newer.home / 'bin'}:{os.environ['PATH']}")
    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: ()))
    pathed, named = asking("path", (17, 21)), asking(str(older.home), (21,))
    fitting, any_will_do = asking(str(older.home), (17, 21)), asking("path", ("path",))
    for first in (pathed, named):
        outcome = under_test.build([first], lambda _line: None)
        (failure,) = outcome.failures.values()
        assert (outcome.hashes, list(outcome.failures)) == ({}, [first.slug])
        limit = "25, only 17, 21" if first is pathed else "17, only 21"
        assert failure.problems[0].message == f"fake.healthy does not take jdk {limit}"
    assert failure.hint == f"{older.home} is Temurin 17.0.8+9: ask for 21, or name the home of such a JDK"
    assert list(under_test.build([fitting], lambda _line: None).hashes) == [fitting.slug]
    assert list(under_test.build([any_will_do], lambda _line: None).hashes) == [any_will_do.slug]
    with (
        pytest.raises(LaunchError, match=r"fake\.healthy does not take jdk 17, only 21"),
        under_test.running(Launch(named, FREE, tmp_path / "server.log")),
    ):
        pass


def test_none_is_fetched_for_a_variant_that_is_skipped_anyway(tmp_path: Path) -> None:
    def fetch(_feature: int, _folder: Path, _progress: object) -> Jdk:
        raise AssertionError("nobody asked")

    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: (), fetch=fetch))
    assert under_test.build([asking(11)], lambda _line: None).failures == {}
    assert under_test.availability(asking(17).catalogued).state == "built"


def test_flags_stand_behind_the_options_of_the_command_and_before_what_it_starts(tmp_path: Path) -> None:
    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: (with_log(tmp_path / "21"),)))
    plain = asking(21)
    start = plain.catalogued.start.model_copy(update={"command": ("{java}", "-Xms1g", "-Xmx1g", "{port}")})
    entry = plain.catalogued.model_copy(update={"start": start})
    flags = FlagSet(name="numa", flags=("-XX:+UseNUMA", "-Xss1m"))
    variant = plain.model_copy(update={"entry": entry, "flags": flags})
    assert under_test.build([variant], lambda _line: None).failures == {}
    with under_test.running(Launch(variant, FREE, tmp_path / "server.log")) as running:
        *words, log, numa, stack, port = running.facts.command[1:]
        assert (*words, numa, stack, port) == ("-Xms1g", "-Xmx1g", *flags.flags, str(running.facts.port))
        assert log.startswith("-Xlog:")
    assert (tmp_path / "21/asked").read_text() == "-Xms1g -Xmx1g -XX:+UseNUMA -Xss1m -version\n"


def test_settings_that_the_jvm_refuses_are_a_failure_of_the_build_with_its_words(tmp_path: Path) -> None:
    under_test = launcher(tmp_path, Jdks(tmp_path / "cache", machine=lambda: (with_log(tmp_path / "21"),)))
    refused = asking(21).model_copy(update={"flags": FlagSet(name="wrong", flags=("-XX:+Refused",))})
    outcome = under_test.build([asking(21), refused], lambda _line: None)
    assert list(outcome.hashes) == ["fake.healthy"]
    (failure,) = outcome.failures.values()
    said = "Unrecognized VM option 'Refused'"
    assert failure.problems[0].message == f"JDK 21 does not start with these settings: {said}"
    assert failure.hint.endswith("bin/java -XX:+Refused -version")


def with_log(home: Path) -> Jdk:
    """A JDK that notes the flags of its version query, and refuses one flag as HotSpot does."""
    found = fake_jdk(home, "21.0.8+9")
    server = f'exec {sys.executable} -I -S {SCRIPT} "$last" healthy'
    found.java.write_text(
        f"""#!/bin/sh
for last; do :; done
case "$*" in *Refused*)
printf '%s\\n' "Picked up JAVA_TOOL_OPTIONS: -D" "Unrecognized VM option 'Refused'" "Error: Could not create it"
exit 1
esac
[ "$last" != -version ] || exec sh -c 'echo "$*" >> {home}/asked' - "$@"
{server}
"""
    )
    return found
