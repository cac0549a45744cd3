"""Read the options of a command line as its program reads them. Pure."""

import getopt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from redline.errors import UsageError

_TRUE, _FALSE = {"true", "t", "1"}, {"false", "f", "0"}


@dataclass(frozen=True)
class Options:
    """The options of a program, with all their spellings: `-c --connections`.

    `values` and `switches` map spellings to names. `shown` and `unneeded` list the spellings of options that
    concern only the program's output, and of options that have no counterpart and need none; `refused` says what to do
    instead of an option. There, a spelling ends in `=` if a value follows. `repeated` are names of several values.

    `style`: `mixed` options may follow the words, `first` options stand before them; `go` is the style of Go's `flag`,
    whose options stand before them too.
    """

    style: Literal["mixed", "first", "go"]
    values: Mapping[str, str]
    switches: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    unneeded: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset({"headers"})

    def read(self, program: str, words: Sequence[str]) -> "Read":
        """Read words as options. Raises UsageError for an option that is refused, unknown, or lacks its value."""
        takes = {spelling: True for spellings in self.values for spelling in spellings.split()}
        takes |= {spelling: False for spellings in self.switches for spelling in spellings.split()}
        for text in (self.shown, self.unneeded, *self.refused):
            takes |= {spelling.removesuffix("="): spelling.endswith("=") for spelling in text.split()}
        split = _go if self.style == "go" else _getopt(self.style)
        try:
            pairs, rest = split(takes, words)
        except getopt.GetoptError as error:
            raise UsageError(f"--like: {program}: {error}", hint=f"compare with `{program} --help`") from None
        names = {spelling: name for spellings, name in self.values.items() for spelling in spellings.split()}
        names |= {spelling: name for spellings, name in self.switches.items() for spelling in spellings.split()}
        values: dict[str, Any] = {}
        unneeded: list[str] = []
        for option, value in pairs:
            for spellings, instead in self.refused.items():
                if option in spellings.replace("=", "").split():
                    raise UsageError(f"--like: {program} {option} has no counterpart", hint=instead)
            name = names.get(option)
            if option in self.unneeded.replace("=", "").split():
                unneeded.append(option)
            elif name in self.repeated:
                values.setdefault(name, []).append(value)
            elif name is not None:
                values.pop(name, None)  # the last value counts, and the order in which they were given
                values[name] = value
        return Read(values, tuple(unneeded), tuple(rest))


@dataclass(frozen=True)
class Read:
    """Values by name, in the order of the command line: texts, lists of texts, or whether a switch is on.

    `unneeded` are options as written, `rest` the words that are no options.
    """

    values: Mapping[str, Any]
    unneeded: tuple[str, ...]
    rest: tuple[str, ...]


_Pairs = tuple[list[tuple[str, Any]], list[str]]
_Splits = Callable[[Mapping[str, bool], Sequence[str]], _Pairs]


def _getopt(style: str) -> _Splits:
    def split(takes: Mapping[str, bool], words: Sequence[str]) -> _Pairs:
        short = "".join(f"{option[1:]}{':' if value else ''}" for option, value in takes.items() if len(option) == 2)
        long = [f"{option[2:]}{'=' if value else ''}" for option, value in takes.items() if option.startswith("--")]
        read = getopt.gnu_getopt if style == "mixed" else getopt.getopt
        pairs, rest = read(list(words), short, long)
        return [(option, value if takes[option] else True) for option, value in pairs], rest

    return split


def _go(takes: Mapping[str, bool], words: Sequence[str]) -> _Pairs:
    """Read words as Go's package `flag` does: one dash or two, `-on=false`, up to the first word that is no option."""
    pairs: list[tuple[str, Any]] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        option = f"-{name.lstrip('-')}"
        if option not in takes:
            raise getopt.GetoptError(f"option {name} not recognized")
        if not takes[option]:
            text = value.lower() if equals else "true"
            if text not in _TRUE | _FALSE:
                raise getopt.GetoptError(f"option {name} is true or false, not {value}")
            pairs.append((option, text in _TRUE))
        elif equals or rest:
            pairs.append((option, value if equals else rest.pop(0)))
        else:
            raise getopt.GetoptError(f"option {name} requires argument")
    return pairs, rest
