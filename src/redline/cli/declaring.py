"""How commands are declared: a class of flags is a command, and its attributes are its arguments and flags.

`execute` in the module of the same name in `redline.cli.commands` gets the flags as one value. That module is
imported when the command runs, and this module imports nothing heavy. What typer knows of a command is made when it is
called; its name and its help are enough for `redline --help`.
"""

import gc
from collections.abc import Callable, Container, Mapping
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from redline.cli import interrupts
from redline.errors import UsageError
from redline.refusals import check_memory
from redline.version import VERSION


class _Commands(TyperGroup):
    """All commands; the one that is called is made with its flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the command."""
        _leave_defaults(self, ctx)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command that is called, the command, and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and made(str(name)), rest


app = typer.Typer(
    cls=_Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
FLAGS: "dict[str, type[Flags]]" = {}
"""The flags of each command by its name."""
_WORDS_FOLLOW: set[str] = set()
"""The commands whose argument has words of its own, which may look like flags."""
_OF_EXTRAS: set[str] = set()
"""The commands that are no core."""
F = TypeVar("F", bound="Flags")
_WRITTEN = ("output", "write_suite", "log", "times")
"""The fields that name what is written."""
_OPTIONAL: dict[str, str] = {}
"""What flags mean that are given without their value, by their names."""
_TYPED: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())
"""The fields given on the command line; typer tells only their values."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redline {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """A performance lab for HTTP servers whose numbers nobody has to doubt."""
    del version


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Flags:
    """The flags of a command as one value; class attributes declare them. A dataclass takes longer to create.

    `typed` are the fields given on the command line.
    """

    heading = "Options"
    """What `--help` shows above the flags of this class."""
    stand_last = False
    """Whether `--help` shows them below those of all other classes."""

    def __init__(self, *, typed: frozenset[str] = frozenset(), **values: object) -> None:
        self.typed = typed
        vars(self).update({name: declared.default for name, declared in self.declared().items()} | values)

    @classmethod
    def declared(cls) -> dict[str, Any]:
        """The declaration of every field for typer: own fields first, then inherited ones, and what stands last."""
        return {name: getattr(cls, name) for name in cls.headings()}

    @classmethod
    def headings(cls) -> dict[str, str]:
        """The heading of every field, in the order of `--help`."""
        bases = sorted(cls.__mro__[:-1], key=lambda base: bool(vars(base).get("stand_last")))
        headings: dict[str, str] = {}
        for base in bases:
            for name in base.__annotations__:
                headings.setdefault(name, vars(base).get("heading", Flags.heading))
        return headings

    def written(self) -> dict[str, str]:
        """Map fields to flags with their values, as users write them."""
        return {
            name: f"{declared.param_decls[0]} {getattr(self, name)}"
            for name, declared in self.declared().items()
            if declared.param_decls
        }

    def given(self, *, among: Container[str] = (), but: Container[str] = ()) -> tuple[str, ...]:
        """Return the flags that differ from their defaults, as users write them: those in `among`, or all but `but`."""
        return tuple(
            declared.param_decls[0] if declared.param_decls else declared.metavar
            for name, declared in self.declared().items()
            if name not in but and (not among or name in among) and getattr(self, name) != declared.default
        )


class _StrictCommand(TyperCommand):
    """A command that refuses a flag given twice if it takes one value; typer would use the last value."""

    headings: Mapping[str, str] = {}
    """The headings of its flags in the help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises UsageError."""
        _leave_defaults(self, ctx)
        valued = (option for option in self.params if not getattr(option, "is_flag", False))
        args = _with_values(args, {name for option in valued for name in option.opts} & _OPTIONAL.keys())
        if not ctx.resilient_parsing:  # shell completion reads half a command line
            values, _, given = self.make_parser(ctx).parse_args(args=list(args))
            # An argument is among them also where it is left out, without a value.
            _TYPED.set(frozenset(option.name for option in given if values.get(option.name) is not None))
            for option in given:
                _check_path(option, values.get(option.name))
                takes_one = isinstance(option, TyperOption) and not option.multiple and not option.is_flag
                if takes_one and given.count(option) > 1:
                    flag = "/".join(option.opts)
                    raise UsageError(f"{flag} is given twice", hint="it takes one value: leave out the other")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options under the headings of their classes."""
        parts: dict[str, list[tuple[str, str]]] = {}
        heading = Flags.heading
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                heading = self.headings.get(parameter.name or "", heading)  # that of --help is the last one
                parts.setdefault("Arguments" if parameter.param_type_name == "argument" else heading, []).append(record)
        for title, records in parts.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _check_path(option: Any, value: object) -> None:
    """Raise UsageError for an empty path, which Python takes for the current folder, and for an output to stdout."""
    if option.type_descriptor.annotation not in (Path, list[Path]):
        return
    flag = option.opts[0] if isinstance(option, TyperOption) else ""
    if value == "" or (isinstance(value, list | tuple) and "" in value):
        shown = f"{flag} {option.metavar}".strip()
        raise UsageError(f"{flag or option.metavar} has no value", hint=f"write {shown}, or leave it out")
    if value == "-" and option.name in _WRITTEN:
        raise UsageError(
            f"{flag} - would write to stdout, which it cannot", hint="give a name; `./-` is a file called -"
        )


def _leave_defaults(command: Any, ctx: Any) -> None:
    """Leave defaults as they are: typer would build a validator of pydantic for each flag that is not given."""

    def processed(parameter: Any, process: Callable[[Any, object], object], ctx: Any, value: object) -> object:
        is_given = parameter.required or ctx.get_parameter_source(parameter.name).name != "DEFAULT"
        return process(ctx, value) if is_given else value

    for parameter in command.get_params(ctx):
        parameter.process_value = partial(processed, parameter, parameter.process_value)


def _with_values(args: list[str], optional: Container[str]) -> list[str]:
    """The arguments with the values of optional flags that are given without one; a value is written with `=`."""
    ends = args.index("--") if "--" in args else len(args)
    return [f"{arg}={_OPTIONAL[arg]}" if arg in optional and at < ends else arg for at, arg in enumerate(args)]


def collect_garbage() -> None:
    """Collect garbage from now on, if the script has not until now; not in what was imported, which stays."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # most of what judging makes stays: it would collect for a quarter of its time
        gc.enable()


def execute_of(name: str) -> Any:
    """Return what executes a command. Raises UsageError where that is no core, and absent."""
    if name not in _OF_EXTRAS:
        return import_module(f"redline.cli.commands.{name}").execute
    from redline.entry_points import extra  # noqa: PLC0415 - reading what is installed takes long

    return extra(name, f"redline {name}")


def command(name: str, *, words_follow: bool = False, is_extra: bool = False) -> Callable[[type[F]], type[F]]:
    """Declare a command by the class of its flags. With `words_follow`, flags after an argument are part of it.

    `is_extra`: what executes it is no core, and is loaded by an entry point.
    """
    if is_extra:
        _OF_EXTRAS.add(name)

    def declare(kind: type[F]) -> type[F]:
        app.command(name, help=kind.__doc__)(lambda: None)
        FLAGS[name] = kind
        if words_follow:
            _WORDS_FOLLOW.add(name)
        return kind

    return declare


def made(name: str) -> Any:
    """Make a command with its flags, as typer has it."""
    kind = FLAGS[name]

    def run(**flags: object) -> None:
        check_memory()
        execute = execute_of(name)
        collect_garbage()
        interrupts.raise_interrupts()
        _check_folder()
        execute(kind(typed=_TYPED.get(), **flags))

    hints = get_type_hints(kind)
    parameters = [
        Parameter(field, Parameter.KEYWORD_ONLY, default=declared, annotation=hints[field])
        for field, declared in kind.declared().items()
    ]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    settings = {"allow_interspersed_args": name not in _WORDS_FOLLOW, "help_option_names": ["-h", "--help"]}
    alone.command(name, cls=_StrictCommand, help=kind.__doc__, context_settings=settings)(run)
    command: Any = get_command(alone)
    command.headings = kind.headings()
    return command


def _check_folder() -> None:
    """Raise UsageError if the current folder has been removed: no file in it or above it can be opened."""
    try:
        Path.cwd()
    except OSError as error:
        message = f"the current folder cannot be used: {error.strerror}"
        raise UsageError(message, hint="change to a folder that exists, with cd") from error


def argument(metavar: str, text: str, default: Any = ...) -> Any:
    """Declare an argument; without a default it is required."""
    return typer.Argument(default, metavar=metavar, help=text, show_default=False)


def flag(
    names: str,
    metavar: str | None,
    text: str,
    default: Any = None,
    shown: bool | str = True,
    completed: tuple[str, ...] = (),
) -> Any:
    """Declare a flag: its names, separated by spaces, the placeholder of its value, its help, and its shown default.

    `completed` are values that a shell completes, where others may be given too.
    """
    complete = (lambda incomplete: [name for name in completed if name.startswith(incomplete)]) if completed else None
    return typer.Option(
        default, *names.split(), metavar=metavar, help=text, show_default=shown, autocompletion=complete
    )


def optional(name: str, metavar: str, text: str, without: str) -> Any:
    """Declare a flag whose value may be left out, and follows `=` otherwise; `without` is what it means then."""
    _OPTIONAL[name] = without
    return flag(name, f"[={metavar}]", text)


def switch(names: str, text: str) -> Any:
    """Declare a flag without a value."""
    return flag(names, None, text, default=False)


def repeated(names: str, metavar: str, text: str) -> Any:
    """A flag that may be given several times."""
    return flag(names, metavar, text, default=[], shown=False)


class ProgressFlags(Flags):
    """How much a command says on stderr while it works."""

    heading, stand_last = "Progress", True

    quiet: bool = switch("-q --quiet", "Print the result and errors alone, and no progress.")
    verbose: bool = switch(
        "-v --verbose",
        "Say what is started, asked and ended, with pids, ports and times; of a load or a run all that was measured.",
    )
