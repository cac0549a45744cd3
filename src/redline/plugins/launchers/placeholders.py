"""`{port}`, `{folder}`, `{cpus}` and the options of a server, filled into its command and environment."""

from redline.model import Variant
from redline.model.catalogue import option_text
from redline.model.placeholders import filled


def fill(variant: Variant, *, port: int, folder: str, cpus: int) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment (only what the entry adds) of a variant.

    The catalogue has made sure that every name is known and that the port is among them: a server on a port of its own
    choice could not be told from another one.
    """
    start = variant.entry.start
    values = {name: option_text(value) for name, value in variant.options.items()}
    values |= {"port": str(port), "folder": folder, "cpus": str(cpus)}
    return tuple(filled(part, values) for part in start.command), {
        name: filled(text, values) for name, text in start.env.items()
    }
