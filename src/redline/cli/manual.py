"""Write the manual page, shell completions and `llms.txt` from the commands, for `share/` in the wheel."""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from typer._completion_shared import get_completion_script
from typer.main import get_command

from redline.cli.at_once import COLUMNS
from redline.cli.command_line import FLAGS, app
from redline.cli.declaring import made, root

_COMPLETIONS = {
    "bash": "bash-completion/completions/redline",
    "zsh": "zsh/site-functions/_redline",
    "fish": "fish/vendor_completions.d/redline.fish",
}
_MAN = "man/man1/redline.1"
_LLMS = "doc/redline/llms.txt"
EXIT_CODES = (
    ("0", "done"),
    ("1", "could not run, or no valid result"),
    ("2", "wrong input: a flag, a suite, a catalogue entry; nothing was started"),
    ("3", "an objective was missed, --abort-when ended a load, or --fail-on met its verdict"),
    ("130", "interrupted by Ctrl-C; what was measured is kept; 143 by SIGTERM, 129 by SIGHUP"),
)
_USAGE = """\
Data goes to stdout, progress and messages to stderr. `redline COMMAND --json` prints JSON of a published schema
(docs/reference/report.schema.json, docs/reference/cli.schema.json). Results without an interval, and results with a
grave finding, are no evidence. Servers are commands with `{port}` in them, URLs, or git revisions:

    redline init './server --port {port}'      writes redline.yaml; then: redline run
    redline ab './old --port {port}' './new --port {port}' --path /items --json
    redline load http://127.0.0.1:8080/ -R 20000 --json
    redline limit http://127.0.0.1:8080/ --objective 'p99 < 200ms' --json
    redline run quickstart
"""


def completions() -> dict[str, str]:
    """Return the scripts that complete commands and flags, by file name below `share/`."""
    variable = "_REDLINE_COMPLETE"
    return {
        name: get_completion_script(prog_name="redline", complete_var=variable, shell=shell) + "\n"
        for shell, name in _COMPLETIONS.items()
    }


def pages(version: str, documents: Mapping[str, str]) -> dict[str, str]:
    """Return the manual page, and `llms.txt` with links to `documents`, which maps names to texts."""
    return {_MAN: man_page(version), _LLMS: llms_txt(documents)}


def helps() -> dict[str, str]:
    """Return what `--help` prints of Redline and of each command, on a terminal of at least COLUMNS."""
    group: Any = get_command(app)
    all_of = _context(group, "redline")
    commands = {name: made(name) for name in FLAGS}
    texts = {name: command.get_help(_context(command, name, all_of)) for name, command in commands.items()}
    return {name: f"{text}\n" for name, text in ({"redline": group.get_help(all_of)} | texts).items()}


def _context(command: Any, name: str, parent: Any = None) -> Any:
    """How typer makes a help; it leaves two columns free."""
    width = COLUMNS - 2
    return command.context_class(
        command, info_name=name, parent=parent, terminal_width=width, **command.context_settings
    )


def man_page(version: str) -> str:
    """`redline(1)`: every command with its flags, in roff."""
    lines = [
        f'.TH REDLINE 1 "" "redline {_escaped(version)}" "User Commands"',
        ".SH NAME",
        f"redline \\- {_escaped(str(root.__doc__).rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B redline",
        "COMMAND [FLAGS] [ARGUMENTS]",
        ".SH COMMANDS",
    ]
    for name in FLAGS:
        command = made(name)
        lines += [f".SS redline {name}{_arguments(command)}", *_paragraphs(command.help)]
        for parameter in command.params:
            lines += [".TP", f".B {_escaped(_called(parameter))}", _escaped(_about(parameter))]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES:
        lines += [".TP", f".B {code}", _escaped(meaning)]
    return "\n".join(lines) + "\n"


def flags() -> dict[str, list[tuple[str, str]]]:
    """Return the arguments and flags of every command, as its help names and describes them."""
    return {name: [(_called(parameter), _about(parameter)) for parameter in made(name).params] for name in FLAGS}


def llms_txt(documents: Mapping[str, str]) -> str:
    """Return the text that a language model reads first: what Redline is, all commands, and where the documents are."""
    lines = ["# Redline", "", f"> {root.__doc__}", "", _USAGE, "## Commands", ""]
    for name in FLAGS:
        command = made(name)
        lines.append(f"- `redline {name}{_arguments(command)}`: {' '.join(command.help.split())}")
    lines += ["", "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES) + ".", ""]
    folders: dict[str, list[str]] = {}
    for name, text in documents.items():
        folders.setdefault(str(PurePosixPath(name).parent), []).append(
            f"- [{_title(text)}]({name}){_first_words(text)}"
        )
    for folder, links in folders.items():
        lines += [f"## {'Overview' if folder == '.' else folder.removeprefix('docs/').capitalize()}", "", *links, ""]
    return "\n".join(lines)


def _arguments(command: Any) -> str:
    """Return the arguments of a command as in its usage line, after a blank."""
    shown = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    return "".join(f" {metavar}" for metavar in shown)


def _called(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join(sorted(parameter.opts, key=len))
    return f"{names} {parameter.metavar}" if parameter.metavar and not parameter.is_flag else names


def _about(parameter: Any) -> str:
    return str(parameter.help or "")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(textwrap.dedent(text).strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    """Escape text for roff: no line begins with a control character."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("|", "|\\:")  # a line may break after a choice
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _title(text: str) -> str:
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "")


def _first_words(text: str) -> str:
    """Return the first sentence after the title, after a colon; nothing if a table or a list comes first."""
    body = text.partition("\n\n")[2].split("\n\n")
    paragraph = next((" ".join(part.split()) for part in body if part[:1].isalnum()), "")
    sentence = paragraph.partition(". ")[0].rstrip(".:")
    return f": {sentence}" if sentence and "](" not in sentence else ""
