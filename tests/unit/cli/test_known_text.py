"""What a run says of its comparisons so far, what is open, and how long that takes."""

from redline.analysis.undecided import Undecided
from redline.cli.session_view import known_text

MINUTE = 60 * 10**9
GROUP = ("A.home.load-1", "B.home.load-2")


def known(*names: str, units: tuple[tuple[tuple[str, ...], ...], ...] = ((GROUP,),), impossible: int = 0) -> Undecided:
    round_ns = 4 * MINUTE if units else 0
    return Undecided(sure=3, decided=1, names=names, impossible=impossible, units=units, round_ns=round_ns)


def test_it_says_what_is_known_what_is_open_and_how_long_that_takes() -> None:
    assert known_text(known("B.home.load"), 60 * MINUTE) == (
        "so far 3 comparisons sure, 1 decided, 1 undecided (B.home.load); "
        "a start of each that is not sure takes about 4 min, and 1 h is left"
    )


def test_of_many_it_names_a_few_and_without_time_it_names_none() -> None:
    text = known_text(known(*"abcde", impossible=2), 0)
    assert "5 undecided (a, b, c and 2 more), 2 impossible; a start of each" in text
    assert text.endswith("takes about 4 min")


def test_it_says_that_nothing_is_left() -> None:
    assert known_text(known(units=()), MINUTE).endswith("0 undecided; nothing is left to decide")
