"""The page about findings is written from the table of rules."""

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from redline.findings.rules import Rule
from redline.findings.table import RULES, SUBJECTS
from redline.model import Grade, Numbers
from redline.quantities import percent

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "concepts" / "findings.md"
BEGIN = "<!-- From here on written by `REDLINE_WRITE_FINDINGS=1 pytest tests/unit/findings/test_page.py`. -->\n"


def test_the_page_says_what_the_rules_say() -> None:
    by_hand, begin, written = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert begin
    if os.environ.get("REDLINE_WRITE_FINDINGS"):
        PAGE.write_text(by_hand + BEGIN + page(), encoding="utf-8")
        return
    assert written == page(), "REDLINE_WRITE_FINDINGS=1 pytest tests/unit/findings/test_page.py writes it anew"


def test_every_rule_has_its_section_and_every_link_to_one_arrives() -> None:
    text = page()
    for rule in RULES.values():
        section = text.split(f"\n### {rule.kind}\n")[1].split("\n##")[0]
        plain = " ".join(section.split())
        assert re.fullmatch(r"\S.*?\n\n.*?\n\n *Advice: .*?\n *", rule.text, re.DOTALL), rule.kind
        for paragraph in rule.paragraphs:
            assert paragraph in plain
        for grade in Grade:
            assert (getattr(rule, grade) is not None) <= (f"**{grade}**" in plain), (rule.kind, grade)
    anchors = set(re.findall(r"^#+ (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    slugs = {re.sub(r"[^a-z0-9 -]", "", anchor.lower()).replace(" ", "-") for anchor in anchors}
    for file in DOCS.rglob("*.md"):
        links = re.findall(r"findings\.md#([a-z0-9-]+)", file.read_text(encoding="utf-8"))
        assert set(links) <= slugs, file


def page() -> str:
    """What invalid findings leave, then the sections of all rules, by subject."""
    return "\n".join("\n".join(line) for line in (_left(), *_sections()))


def _left() -> list[str]:
    """A table of the rules that may be invalid, and what they then leave of which numbers."""
    numbers = [name for name in get_args(Numbers) if name != "message times"]
    lines = [
        "",
        "## What is left of each number",
        "",
        "Empty: known. Later messages are left as service times; `late-reads` hides only what is unsure of them.",
        "",
    ]
    lines += [f"| invalid by | {' | '.join(numbers)} |", f"|---|{'---|' * len(numbers)}"]
    for rule in RULES.values():
        if rule.invalid is not None and rule.touches:
            left = (rule.touches.get(name, "") for name in numbers)
            lines.append(f"| [{rule.kind}](#{rule.kind}) | {' | '.join(left)} |")
    return lines


def _sections() -> Iterator[list[str]]:
    told = set()
    for subject, module in SUBJECTS.items():
        yield ["", f"## {subject}", ""]
        for rule in (one for one in vars(module).values() if isinstance(one, Rule)):
            if rule.kind not in told:
                told.add(rule.kind)
                measures, reason, advice = rule.paragraphs
                yield [f"### {rule.kind}", "", *_paragraph(f"{measures} {_limits(rule)}{reason}"), ""]
                yield [*_paragraph(f"*Advice:* {advice}"), ""]


def _limits(rule: Rule) -> str:
    """`**note** above 2%, **warn** above 10%. `: empty if the rule describes its grades in words."""
    limits = {grade: limit for grade in Grade if (limit := getattr(rule, grade)) is not None}
    if not rule.unit:
        return ""
    if not any(limits.values()):
        return f"{', '.join(f'**{grade}**' for grade in limits)}. "
    return f"{', '.join(f'**{grade}** above {_value(limit, rule.unit)}' for grade, limit in limits.items())}. "


def _value(limit: float, unit: str) -> str:
    return percent(limit) if unit == "%" else f"{limit:g}{unit}"


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
