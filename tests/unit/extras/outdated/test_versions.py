"""The order of versions, and which are stable releases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.outdated.versions import is_newer, is_stable, newest, order

NUMBERS = st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=5)


@pytest.mark.parametrize(
    "version",
    ["1", "1.2.3", "v1.2.3", "4.1.118.Final", "5.0.GA", "3.0.RELEASE", "33.4.0-jre", "1.0.post1", "1.0+build5"],
)
def test_releases(version: str) -> None:
    assert is_stable(version)


@pytest.mark.parametrize(
    "version",
    [
        "2.0-alpha1",
        "2.0.0-beta.3",
        "2.0rc1",
        "2.0.0-RC2",
        "1.0.0-M45",
        "4.0.0.CR1",
        "1.0-SNAPSHOT",
        "1.0a1",
        "1.0.dev3",
        "latest",
        "1.0.0-23-abcdef",
        "3.8.0-bin-20260101-abc-NIGHTLY",
        "v0.0.0-20260101000000-abcdefabcdef",
    ],
)
def test_what_is_not_a_release(version: str) -> None:
    assert not is_stable(version)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9.0", "1.10.0"),
        ("4.1.118.Final", "4.2.0.Final"),
        ("1.2", "1.2.0.1"),
        ("2.0.0-RC1", "2.0.0"),
        ("2.0.0-beta9", "2.0.0-beta10"),
        ("2.0.0-alpha2", "2.0.0-beta1"),
        ("1.0", "1.0.post1"),
        ("v1.2.3", "1.2.4"),
        ("unknown", "0.1"),
    ],
)
def test_the_order_of_examples(older: str, newer: str) -> None:
    assert is_newer(newer, older)
    assert not is_newer(older, newer)


@pytest.mark.parametrize("same", [("1.0", "1.0.0"), ("4.1.Final", "4.1"), ("v2", "2.0"), ("1.0+a", "1.0")])
def test_what_is_the_same_version(same: tuple[str, str]) -> None:
    assert order(same[0]) == order(same[1])


@given(NUMBERS, NUMBERS)
def test_releases_are_in_the_order_of_their_numbers(one: list[int], other: list[int]) -> None:
    longest = max(len(one), len(other))
    padded = [numbers + [0] * (longest - len(numbers)) for numbers in (one, other)]
    first, second = (".".join(map(str, numbers)) for numbers in (one, other))
    assert is_newer(first, second) == (padded[0] > padded[1])


@given(NUMBERS, st.sampled_from(["-RC1", "-SNAPSHOT", "a1", "-M3", ".Beta2", "-alpha.1"]))
def test_what_comes_before_a_release_is_older(numbers: list[int], word: str) -> None:
    release = ".".join(map(str, numbers))
    assert is_newer(release, release + word)
    assert newest([release, release + word]) == release


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_texts_have_an_order(texts: list[str]) -> None:
    found = newest(texts)
    assert (found is None) == (texts == [])
    assert found is None or not any(is_newer(text, found) for text in texts if is_stable(text))


def test_the_newest_is_a_release_if_there_is_one() -> None:
    assert newest(["1.0", "2.0-RC1", "0.9"]) == "1.0"
    assert newest(["0.0.1-alpha7", "0.0.1-alpha10"]) == "0.0.1-alpha10"


def test_only_the_parts_that_are_pinned_count() -> None:
    assert not is_newer("0.23.46", "0.23", parts=2)
    assert is_newer("0.24.0", "0.23", parts=2)
    assert is_newer("2", "1.5", parts=2)
