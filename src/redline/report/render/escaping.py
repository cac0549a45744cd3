"""Foreign text in Markdown."""

import re

_SPECIAL = re.compile(r"([\\`*_\[\]#|~])")
_WORD_JOINER = "\u2060"


def safe(text: str) -> str:
    """One line of plain text: markup, HTML, mentions and references to issues are taken out of force."""
    line = " ".join(text.split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    return re.sub(r"([@#])(?=\w)", rf"\1{_WORD_JOINER}", line)
