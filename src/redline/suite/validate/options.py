"""Resolve the options of a suite's servers: from `with`, then from `jvm`, then the default. Pure."""

from collections.abc import Mapping
from posixpath import normpath

from redline.model import Option, OptionValue, ServerEntry
from redline.model.catalogue import JDK, ON_PATH, as_written, is_among
from redline.model.jvm import FlagSet
from redline.model.variant import FLAGS
from redline.quantities import clip, did_you_mean
from redline.schema.document import Path
from redline.schema.suite import ServerSchema
from redline.schema.types import Choices, FlagSets
from redline.suite.catalogue import Catalogue
from redline.suite.validate.checking import Sheet, suggest

Axes = Mapping[str, list[OptionValue]]
_JVM: Path = ("jvm",)


def jvm_axes(sheet: Sheet) -> Axes:
    """The options that the suite gives to all of its JVM servers."""
    axes = {str(path[-1]): sheet.sound(Choices, path) for path in sheet.items(_JVM) if path[-1] != FLAGS}
    return {name: values for name, values in axes.items() if values}


def flag_sets(sheet: Sheet) -> tuple[FlagSet | None, ...]:
    """The sets of flags that the suite gives to all of its JVM servers; None is a JVM without further flags."""
    written = sheet.sound(FlagSets, (*_JVM, FLAGS))
    return tuple(dict.fromkeys(written)) if written else (None,)


def axes_of(entry: ServerEntry, written: Axes, jvm: Axes) -> Axes:
    """The values of every option of a server, with unsupported values of `jvm`: they become skipped cells."""
    shared = jvm if entry.runtime == "jvm" else {}
    return {
        name: _distinct(name, written.get(name) or shared.get(name) or [option.default])
        for name, option in entry.options.items()
    }


def check_option(sheet: Sheet, path: Path, entry: ServerEntry, name: str, values: list[OptionValue]) -> None:
    """Note problems of the values that a server is given for an option."""
    option = entry.options.get(name)
    if option is None:
        known = tuple(entry.options)
        hint = f"it has: {', '.join(known)}" if known else "it has no options: remove `with`"
        sheet.wrong(path, f"{entry.name} has no option `{clip(name)}`", did_you_mean(name, known) or hint, key=True)
        return
    for index, value in enumerate(values):
        where = _place(sheet, path, index)
        if not entry.takes(name, value):
            message = f"`{clip(as_written(value))}` is not a value of `{name}` of {entry.name}"
            sheet.wrong(where, message, _value_hint(name, value, (option,)))
    _check_twice(sheet, path, name, values)


def check_jvm(sheet: Sheet, catalogue: Catalogue) -> None:
    """Note parts of `jvm` that no server of the suite supports. If some servers do, the cells of others are skipped."""
    if sheet.document.at(_JVM) is None or not sheet.is_sound(("servers",)):
        return
    servers: list[tuple[ServerEntry, Axes]] = []
    for _, written in sheet.sound_items(ServerSchema, ("servers",)):
        entry = catalogue.servers.get(written.use or "")
        if entry and entry.runtime == "jvm":
            servers.append((entry, written.options))
    if not servers:
        hint = "remove it, or add a server whose runtime is `jvm`, as `redline list` shows it"
        sheet.wrong(_JVM, "`jvm` applies to no server of this suite", hint, key=True)
        return
    for name, values in jvm_axes(sheet).items():
        _check_jvm_option(sheet, name, values, servers)
    _check_flags(sheet)


def _check_flags(sheet: Sheet) -> None:
    """Note problems of the named sets, and named sets under another key than `flags`."""
    for path in sheet.items(_JVM):
        has_names = isinstance(sheet.document.at(path), dict)
        if has_names != (path[-1] == FLAGS):
            hint = 'write `flags: {none: "", compact: "-XX:+UseCompactObjectHeaders"}`, and options as lists of values'
            sheet.wrong(path, "named sets are for `flags`, and `flags` are named sets", hint, once=True)
    path = (*_JVM, FLAGS)
    seen: dict[tuple[str, ...], None] = {}
    for where, flag_set in zip(sheet.items(path), sheet.sound(FlagSets, path) or (), strict=False):
        flags = flag_set.flags if flag_set else ()
        if flags in seen:
            sheet.wrong(where, "these flags are given twice", "remove a set", key=True)
        seen[flags] = None


def _check_jvm_option(
    sheet: Sheet, name: str, values: list[OptionValue], servers: list[tuple[ServerEntry, Axes]]
) -> None:
    path = (*_JVM, name)
    with_option = [(entry, written) for entry, written in servers if name in entry.options]
    if not with_option:
        hint = suggest(name, dict.fromkeys(option for entry, _ in servers for option in entry.options), "their options")
        sheet.wrong(path, f"no JVM server of this suite has an option `{clip(name)}`", hint, key=True)
    elif all(name in written for _, written in with_option):
        message = f"`{name}` applies to no server of this suite: all servers that have it set it in `with`"
        sheet.wrong(path, message, "remove it from `jvm` or from `with`", key=True)
    for index, value in enumerate(values):
        if with_option and not any(entry.takes(name, value) for entry, _ in with_option):
            message = f"`{clip(as_written(value))}` is not a value of `{name}` of any JVM server of this suite"
            hint = _value_hint(name, value, tuple(entry.options[name] for entry, _ in with_option))
            sheet.wrong(_place(sheet, path, index), message, hint)
    _check_twice(sheet, path, name, values)


def _check_twice(sheet: Sheet, path: Path, name: str, values: list[OptionValue]) -> None:
    for index, value in enumerate(values):
        if is_among(_normal(name, value), tuple(_distinct(name, values[:index]))):
            sheet.wrong(_place(sheet, path, index), f"`{as_written(value)}` is given twice", "remove one")


def _distinct(name: str, values: list[OptionValue]) -> list[OptionValue]:
    """The values without repetitions: a repetition is noted once, not for every variant."""
    distinct: list[OptionValue] = []
    for value in values:
        if not is_among(_normal(name, value), tuple(distinct)):
            distinct.append(_normal(name, value))
    return distinct


def _place(sheet: Sheet, path: Path, index: int) -> Path:
    return (*path, index) if isinstance(sheet.document.at(path), list) else path


def _normal(name: str, value: OptionValue) -> OptionValue:
    """Normalize the path of a JDK's home, to get a single variant."""
    return normpath(value) if name == JDK and isinstance(value, str) and value.startswith("/") else value


def _value_hint(name: str, value: OptionValue, options: tuple[Option, ...]) -> str:
    known = tuple(dict.fromkeys(as_written(other) for option in options for other in option.values))
    if as_written(value) in known:
        return "write it without quotes" if isinstance(value, str) else f'quote it: "{as_written(value)}"'
    if name == JDK:
        return f"it takes: {', '.join(known)}, `{ON_PATH}` for the PATH's, or the absolute path of a JDK's home"
    return did_you_mean(as_written(value), known) or f"it takes: {', '.join(known)}"
