"""`{port}`, `{folder}`, `{cpus}` and the options of a server, filled into its command and environment."""

import re

from redline.errors import UsageError
from redline.model import OptionValue, ServerEntry, Variant

_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")


def fill(variant: Variant, *, port: int, folder: str, cpus: int) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment (only what the entry adds) of a variant. Raises UsageError.

    Every placeholder must be known, and the port must be in the command or in the environment: a server on a port of
    its own choice could not be told from another one.
    """
    entry = variant.entry
    values = {**{name: option_text(value) for name, value in variant.options.items()}, "folder": folder}
    values |= {"port": str(port), "cpus": str(cpus)}
    _check(entry, values)
    command = tuple(_filled(part, values) for part in entry.start.command)
    return command, {name: _filled(text, values) for name, text in entry.start.env.items()}


def option_text(value: OptionValue) -> str:
    """As it stands in a suite: `on` and `off` for booleans."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _filled(text: str, values: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _check(entry: ServerEntry, values: dict[str, str]) -> None:
    texts = (*entry.start.command, *entry.start.env.values())
    used = {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)}
    for name in sorted(used - values.keys()):
        raise UsageError(
            f"{entry.name}: the start command names {{{name}}}, which is neither an option of this server"
            " nor one of port, folder and cpus",
            hint=f"declare an option {name!r} in its server.yaml, or use one of: {', '.join(sorted(values))}",
        )
    if "port" not in used:
        raise UsageError(
            f"{entry.name}: neither its start command nor its environment names {{port}}",
            hint="the lab chooses a free port for each start; pass it on, as in `--port {port}`",
        )
