"""Stacks of a profile: their text form, and the laws of adding them up."""

import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import RedlineError
from redline.model import ProfileFacts, ProfileFile, Recording, Slice, Stack, Stacks, Thread

TEXT = """\
# event: ctimer 1
main;startup 2
# slice 1000 2000 ns
[http worker-1 tid=12];java/lang/Thread.run;com/acme/Handler$$Lambda.0x0001.get_[j] 12
[tid=13];[unknown] 3

[http worker-1 tid=12];java/lang/Thread.run;com/acme/Handler$$Lambda.0x0001.get_[j] 1
# slice 2000 3000 ns
"""

frames = st.text(st.characters(codec="utf-8", exclude_characters="\n;[#"), min_size=1, max_size=8).filter(str.strip)
stacks_of_any = st.builds(
    Stack,
    st.lists(frames.map(str.strip), min_size=1, max_size=4).map(tuple),
    st.none() | st.builds(Thread, st.sampled_from(["", "pool-1-thread-2", "a tid=1] b"]), st.integers(0, 10**9)),
    st.none() | st.sampled_from([Slice(0, 5), Slice(5, 10), Slice(10, 15)]),
)
profiles = st.dictionaries(stacks_of_any, st.integers(1, 10**9), max_size=8).map(
    lambda weights: Stacks(weights, tuple(sorted({stack.slice for stack in weights if stack.slice})))
)


def test_the_text_form_names_threads_and_slices() -> None:
    found = Stacks.from_text(TEXT)
    first, second = Slice(1000, 2000), Slice(2000, 3000)
    handler = ("java/lang/Thread.run", "com/acme/Handler$$Lambda.0x0001.get_[j]")
    assert found.weights == {
        Stack(("main", "startup")): 2,
        Stack(handler, Thread("http worker-1", 12), first): 13,
        Stack(("[unknown]",), Thread("", 13), first): 3,
    }
    assert found.slices == (first, second)
    assert found.total == 18


@given(profiles)
def test_what_is_written_is_read(stacks: Stacks) -> None:
    assert Stacks.from_text(stacks.to_text()) == stacks
    assert Stacks.from_bytes(stacks.to_bytes()) == stacks


@given(profiles)
def test_without_the_lines_of_slices_it_is_a_file_of_collapsed_stacks(stacks: Stacks) -> None:
    lines = [line for line in stacks.to_text().split("\n") if line and not line.startswith("#")]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == stacks.total


@given(profiles, profiles, profiles)
def test_merging_adds_up_whatever_the_order(a: Stacks, b: Stacks, c: Stacks) -> None:
    whole = Stacks.merged([a, b, c])
    assert whole.total == a.total + b.total + c.total
    assert whole == Stacks.merged([Stacks.merged([c, a]), b]) == Stacks.merged([a, Stacks.merged([b, c])])


@given(st.text() | st.lists(st.sampled_from([*TEXT.split("\n"), "# slice", "# slice 5 1 ns", "a", "1", "a -1"])))
def test_garbage_is_refused_or_read(garbage: str | list[str]) -> None:
    with contextlib.suppress(RedlineError):
        Stacks.from_text(garbage if isinstance(garbage, str) else "\n".join(garbage), "x.stacks")


@given(st.binary() | st.binary(max_size=60).map(gzip.compress) | st.just(gzip.compress(b"a 1")[:-3]))
def test_garbage_of_bytes_is_refused_or_read(garbage: bytes) -> None:
    with contextlib.suppress(RedlineError):
        Stacks.from_bytes(garbage)


@pytest.mark.parametrize(
    "text", ["# slice 10 10 ns", "# slice 10 x ns", "frame", "frame 1.5", "a;b 99999999999999999999"]
)
def test_what_is_no_stack_is_refused(text: str) -> None:
    with pytest.raises(RedlineError, match="x:2"):
        Stacks.from_text(f"a 1\n{text}\n", "x")


def test_a_recording_has_a_profile_only_if_one_was_made() -> None:
    plain = Recording(cell_id="c", round=0, position=0, seed=1, started_unix_ns=1)
    assert "profile" not in plain.model_dump()
    facts = ProfileFacts(
        kind="cpu",
        subject="server",
        profiler="async-profiler 4.6",
        event="ctimer",
        interval=1_000_000,
        samples=12,
        files=(ProfileFile(name="profiles/1.stacks.gz", form="stacks"), ProfileFile(name="profiles/1.jfr", form="jfr")),
    )
    assert facts.stacks == "profiles/1.stacks.gz"
    profiled = plain.model_copy(update={"profile": facts, "perturbed": True})
    assert Recording.model_validate_json(profiled.model_dump_json()) == profiled
