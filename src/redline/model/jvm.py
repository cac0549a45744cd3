"""Flags of the JVM as an axis: named sets, their place in a command, and flags without effect."""

import re
from collections.abc import Mapping, Sequence

from pydantic import Field

from redline.model.base import Frozen

NO_FLAGS = "none"
"""The name of the empty set of flags, if other servers have flags."""

_JAVA = "{java}"
_ITS_COLLECTOR = re.compile(r"-XX:[+-]?(Z|G1|Shenandoah)[A-Z]\w*")
_NAMED = re.compile(r"-XX:[+-]?(\w+(?:=generational)?)")
_SINCE: Mapping[str, int] = {
    "UseCompactObjectHeaders": 24,
    "ZGenerational": 21,
    "ShenandoahGCMode=generational": 24,
}
"""JEP 450, JEP 439, JEP 404. A JVM refuses other flags that it does not know when it is started for a build."""
_UNTIL: Mapping[str, tuple[int, str]] = {"ZGenerational": (23, "later JDKs ignore it: there Z is always generational")}
"""JEP 490."""


class FlagSet(Frozen):
    """A named set of JVM flags, in the order of the command."""

    name: str
    flags: tuple[str, ...] = Field(min_length=1)


def jvm_words(command: Sequence[str]) -> int:
    """The number of words that start the JVM: `{java}` and the options `-X…` behind it; 0 without `{java}`.

    Further flags follow them: of contradicting flags the JVM takes the last.
    """
    if not command or command[0] != _JAVA:
        return 0
    return next((at for at, word in enumerate(command) if at and not word.startswith("-X")), len(command))


def without_effect(flags: Sequence[str], release: object, collector: object) -> str:
    """The reason why a JVM with these options `jdk` and `gc` refuses or ignores a flag; empty if none is known."""
    for flag in flags:
        of_collector, named = _ITS_COLLECTOR.match(flag), _NAMED.match(flag)
        if of_collector and isinstance(collector, str) and of_collector[1] != collector:
            return f"{flag} is for the collector {of_collector[1]}; {collector} ignores it"
        if named is None or not isinstance(release, int):
            continue
        if release < _SINCE.get(named[1], release):
            return f"{flag} needs JDK {_SINCE[named[1]]} or later"
        last, why = _UNTIL.get(named[1], (release, ""))
        if release > last:
            return f"{flag} is for JDK {last} or earlier; {why}"
    return ""
