"""The table of false alarms is that of the stored answers."""

from bench.false_alarms import PAGE, RESULTS, page


def test_the_page_has_the_table_of_the_stored_answers() -> None:
    """`python -m bench.false_alarms --table` writes it."""
    text = PAGE.read_text()
    assert page(text, RESULTS.read_text().splitlines()) == text
