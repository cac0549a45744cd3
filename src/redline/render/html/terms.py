"""Terms that a reader meets on the first screen of a page, each explained once by a tooltip."""

import re
from functools import cache

from markupsafe import Markup, escape

from redline.findings import RULES

_TERMS = {
    "cell": "a server under one load of one scenario",
    "trial": "one measurement of a freshly started server",
    "start": "the servers started afresh and then measured: the unit that intervals rest on",
    "duet": "servers alive at once and loaded in turn, so that what disturbs one disturbs both",
    "slice": "the load of one server of a duet for 10 to 50 ms, or for a conversation",
    "probe": "one load of a search, at one rate",
    "resolution": "the smallest difference that this measurement could have shown",
    "oracle.null": "a server that does next to nothing: the most that this machine and the engine can do",
}
_PART = re.compile(r"(<[^>]*>)")
_APART = ("a", "abbr", "code", "pre", "svg", "h2", "h3")
"""Elements whose texts stay as they are."""


def explained(html: str) -> Markup:
    """Mark the first occurrence of each term in the texts of some HTML, whose tags have no `>` in their attributes."""
    known, pattern = _known()
    seen, apart = set[str](), 0

    def marked(match: re.Match[str]) -> str:
        term = match[0].lower() if match[0].lower() in known else match[0].lower().removesuffix("s")
        if term in seen:
            return match[0]
        seen.add(term)
        return f'<abbr title="{escape(known[term])}">{match[0]}</abbr>'

    parts = _PART.split(html)
    for at, part in enumerate(parts):
        if at % 2:
            name = part.strip("</>").split()[0] if part.strip("</>") else ""
            apart += (name in _APART) * (-1 if part.startswith("</") else 1)
        elif not apart:
            parts[at] = pattern.sub(marked, part)
    return Markup("".join(parts))  # noqa: S704 - the HTML was rendered, and the titles are escaped


@cache
def _known() -> tuple[dict[str, str], re.Pattern[str]]:
    """The explanations by term, kinds of findings included, and what finds a term."""
    kinds = {kind: _first_paragraph(rule.text) for kind, rule in RULES.items()}
    known = {**{kind: text for kind, text in kinds.items() if text}, **_TERMS}
    names = "|".join(re.escape(name) for name in sorted(known, key=lambda name: (-len(name), name)))
    return known, re.compile(rf"(?<![\w.-])(?:{names})s?(?![\w-]|\.\w)", re.IGNORECASE)


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].replace("*", "").replace("`", "").split())
