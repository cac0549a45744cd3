"""A guide is short: what a subject has beyond its answer stands in the reference."""

from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).parents[3] / "docs" / "guide").glob("*.md"))
MOST_WORDS = 1500


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_is_short(page: Path) -> None:
    words = [word for word in page.read_text(encoding="utf-8").split() if any(map(str.isalnum, word))]
    assert len(words) <= MOST_WORDS, "move what it lists to the reference"
