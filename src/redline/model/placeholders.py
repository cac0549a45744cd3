"""What in braces a server's command and environment may name, and filling it in. Other braces are left alone."""

import re
from collections.abc import Mapping

FILLED_BY_THE_LAB = ("port", "folder", "cpus", "scratch", "java")
JDK = "jdk"  # the option that decides what `{java}` is
ON_PATH = "path"  # the value of that option that means the java on the PATH
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def placeholders(text: str) -> tuple[str, ...]:
    """The names in braces, in order."""
    return tuple(_PLACEHOLDER.findall(text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each name in braces replaced by its value. All of them must be known, as the catalogue checks."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)
