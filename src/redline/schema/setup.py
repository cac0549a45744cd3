"""The setup of a server: its environment, and commands before and after its starts."""

from typing import Annotated

from pydantic import AfterValidator, Field

from redline.errors import WrongValueError
from redline.model.catalogue import filled_names
from redline.schema.shell import FILLED, KNOWN
from redline.schema.types import Schema


def _with_known_names(env: dict[str, str]) -> dict[str, str]:
    for variable, text in env.items():
        for name in filled_names(text):
            if name not in FILLED:
                hint = f"known are {KNOWN}; ${{{name}}} is the variable of your environment"
                raise WrongValueError(f"{{{name}}} in `{variable}` is not a placeholder", hint)
    return env


def _a_path(name: str) -> str:
    if not name.isprintable() or not name.strip():
        raise WrongValueError(f"{name!r} does not name a file", "write its path, such as `.env`")
    return name


Commands = Annotated[str, Field(min_length=1)]
COMMANDS = frozenset({"before", "prepare", "after"})
"""The keys of commands around a start. A compose service can have them too: its environment is in the compose file."""


class SetupSchema(Schema):
    """The setup of a server: its environment, and commands before and after its starts."""

    env: Annotated[dict[str, str], AfterValidator(_with_known_names)] = Field(
        default={},
        description="environment variables of the server; ${NAME} is a variable of your own, which is not stored",
        examples=[{"N": "1", "TOKEN": "${TOKEN}"}],
    )
    env_file: Annotated[str, AfterValidator(_a_path)] | None = Field(
        default=None,
        description="a file of further variables, with a NAME=VALUE per line, relative to the folder in which the "
        "server's commands run; its values are not stored",
        examples=[".env"],
    )
    before: Commands | None = Field(
        default=None,
        description="commands for `sh` before each start of the server, for example to fill a database; PORT is "
        "the server's port",
        examples=["createdb shop_$PORT"],
    )
    prepare: Commands | None = Field(
        default=None,
        description="commands for `sh` once the server is ready, before it gets other requests",
        examples=["curl -fsS -d @items.json http://127.0.0.1:$PORT/items"],
    )
    after: Commands | None = Field(
        default=None,
        description="commands for `sh` once the server has stopped, whatever happened",
        examples=["dropdb shop_$PORT"],
    )
