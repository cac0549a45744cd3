"""Counters of a JVM are read from a file of its own user, whole or not at all."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from redline.watching.perfdata import PerfData
from tests.fakes.jvms import NUMBERS, RELEASE, a_jvm, perf_file, write


def test_counters_are_those_of_the_processs_user_alone(tmp_path: Path) -> None:
    """Every user may make files with such names in /tmp."""
    a_jvm(tmp_path)
    own = tmp_path / "12/root/tmp/hsperfdata_root/1"
    for name in ("hsperfdata_a", "hsperfdata_z"):
        other = tmp_path / "12/root/tmp" / name / "1"
        other.parent.mkdir()
        other.write_bytes(perf_file(release="11"))
        os.chown(other, 65534, 65534)
    counters = PerfData.of(12, str(tmp_path))
    assert counters is not None
    assert counters.texts == {RELEASE: "21"}
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    assert PerfData.of(12, str(tmp_path)) is None


@pytest.mark.parametrize("linked", ["tmp", "tmp/hsperfdata_root", "tmp/hsperfdata_root/1"])
def test_counters_are_read_through_no_link_also_one_that_comes_later(tmp_path: Path, linked: str) -> None:
    """From the root of a container it would lead to another file of this machine."""
    a_jvm(tmp_path)
    counters = PerfData.of(12, str(tmp_path))
    assert counters is not None
    assert counters.values("sun.rt.safepoints") == {"sun.rt.safepoints": 7}
    theirs = tmp_path / "12/root" / linked
    theirs.rename(tmp_path / "elsewhere")
    theirs.symlink_to(tmp_path / "elsewhere")
    assert counters.values("sun.rt.safepoints") == {}
    assert PerfData.of(12, str(tmp_path)) is None


def test_counters_that_are_not_complete_are_none(tmp_path: Path) -> None:
    a_jvm(tmp_path, content=perf_file(accessible=0))
    assert PerfData.of(12, str(tmp_path)) is None


@given(place=some.integers(0, 2000), garbage=some.binary(max_size=64), end=some.integers(0, 2000))
def test_counters_of_any_content_never_raise(
    tmp_path_factory: pytest.TempPathFactory, place: int, garbage: bytes, end: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "perfdata"
    a_jvm(folder)
    file = folder / "12/root/tmp/hsperfdata_root/1"
    whole = bytearray(perf_file())
    whole[place : place + len(garbage)] = garbage
    for content in (bytes(whole), bytes(whole[:end]), garbage):
        file.write_bytes(content)
        read = PerfData.of(12, str(folder))
        if read is not None:
            file.write_bytes(content[:end])
            read.values(*read.places)


def read(folder: Path, content: bytes) -> PerfData | None:
    a_jvm(folder, content=content)
    return PerfData.of(12, str(folder))


def test_numbers_and_texts_are_read_by_their_names(tmp_path: Path) -> None:
    counters = read(tmp_path, perf_file(release="21"))
    assert counters is not None
    assert counters.values(*NUMBERS) == NUMBERS
    assert counters.values("sun.rt.safepoints", "missing") == {"sun.rt.safepoints": 7}
    assert counters.texts == {RELEASE: "21"}
    assert counters.matching("sun.gc.generation.", ".capacity") == [
        "sun.gc.generation.0.capacity",
        "sun.gc.generation.1.capacity",
        "sun.gc.generation.0.space.0.capacity",
    ]


@pytest.mark.parametrize(("at", "value"), [(0, 0), (4, 0), (5, 3), (7, 0)])
def test_another_format_is_not_read(tmp_path: Path, at: int, value: int) -> None:
    """Its magic number, byte order, version, and whether it is complete."""
    content = bytearray(perf_file())
    content[at] = value
    assert read(tmp_path, bytes(content)) is None


def test_a_number_that_is_the_last_of_its_file_is_read(tmp_path: Path) -> None:
    content = perf_file({"last": 5}, release="21")
    counters = read(tmp_path, content)
    assert counters is not None
    cut = content[: counters.places["last"] + 8]
    end = bytearray(cut)
    end[28:32] = (1).to_bytes(4, "little")
    whole = read(tmp_path, bytes(end))
    assert whole is not None
    assert whole.values("last") == {"last": 5}
    short = read(tmp_path, bytes(end[:-1]))
    assert short is not None
    assert short.values("last") == {}
    a_jvm(tmp_path, content=bytes(end[:-1]))
    assert whole.values("last") == {}, "the file has become shorter"


def test_a_process_of_an_older_kernel_has_its_own_number(tmp_path: Path) -> None:
    write(tmp_path, {"12/status": b"Name:\tjava\n", "12/root/tmp/hsperfdata_root/12": perf_file()})
    assert PerfData.of(12, str(tmp_path)) is not None
    assert PerfData.of(13, str(tmp_path)) is None
