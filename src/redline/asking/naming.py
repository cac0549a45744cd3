"""Read parts of what is asked for by the rules of the same keys in suites. Errors name the part."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from redline.driving.protocol import MOST_WORKERS
from redline.errors import UsageError, WrongValueError, joined
from redline.suite.validate.checking import first_mistake
from redline.wording import part


@contextmanager
def naming(asked: str) -> Iterator[None]:
    """Name what was asked for in errors from a block. Raises UsageError."""
    try:
        yield
    except (WrongValueError, UsageError) as error:
        raise UsageError(asked + ": " + error.message, hint=error.hint) from None


def read_part(name: str, value: object, key: str, schema: type[BaseModel]) -> Any:
    """Read a part by the rules of a schema's key. Raises UsageError."""
    field = schema.model_fields[key]
    kind: Any = Annotated[field.annotation, field]
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        mistake = first_mistake(error, schema, (key,))
        raise UsageError(part(name, value) + f": {mistake.message}", hint=mistake.hint) from None


def refuse(parts: tuple[str, ...], why: str) -> None:
    """Raise UsageError if any of these parts, as they are written, is asked for where it has no effect."""
    if parts:
        named = joined(", ", parts)
        raise UsageError(f"{why} " + named, hint=f"leave out {named}")


def at_least_one(name: str, number: int) -> int:
    """Return the number. Raises UsageError if it is below 1."""
    if number < 1:
        raise UsageError(part(name, number) + " is not possible", hint=f"give {part(name)} a whole number from 1")
    return number


def read_workers(threads: int, connections: int) -> int:
    """Return the number of engine workers, each with at least one connection. Raises UsageError."""
    most = min(connections, MOST_WORKERS)
    if at_least_one("threads", threads) > most:
        asked = part("threads", threads)
        message = asked + f" is more than the {connections} connections, and each worker needs a connection"
        if most < connections:
            message = asked + f" is more than {most} workers"
        raise UsageError(message, hint=f"give {part('threads', most)} or fewer")
    return threads
