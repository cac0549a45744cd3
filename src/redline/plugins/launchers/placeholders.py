"""`{port}`, `{java}` and the like, and the options of a server, filled into its command and environment."""

from dataclasses import asdict, dataclass

from redline.model import Variant
from redline.model.catalogue import option_text
from redline.model.placeholders import filled


@dataclass(frozen=True)
class Fillings:
    """What the lab itself fills in at one start of a server; `java` is empty for a variant that asks for no JDK."""

    port: int
    folder: str
    cpus: int
    scratch: str
    java: str = ""


def fill(variant: Variant, fillings: Fillings) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment (only what the entry adds) of a variant.

    The catalogue has made sure that every name is known and that the port is among them: a server on a port of its own
    choice could not be told from another one.
    """
    start = variant.entry.start
    values = {name: option_text(value) for name, value in variant.options.items()}
    values |= {name: str(value) for name, value in asdict(fillings).items()}
    return tuple(filled(part, values) for part in start.command), {
        name: filled(text, values) for name, text in start.env.items()
    }
