"""The schema of `redline.yaml`: how `redline ab --git` builds, starts and asks the server of a repository."""

import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from redline.errors import WrongValueError
from redline.model.catalogue import names_in_braces
from redline.suite.schema.scenario import OneRequestSchema
from redline.suite.schema.server import ReadySchema, StopSchema
from redline.suite.schema.shell import for_a_shell
from redline.suite.schema.types import Schema

FILLED = ("port", "cpus", "scratch")


def read_command(text: str) -> tuple[str, ...]:
    """The parts of a command, which is started without a shell. Raises WrongValueError."""
    try:
        parts, found = tuple(shlex.split(text)), for_a_shell(text)
    except ValueError as error:
        raise WrongValueError(f"{text!r} is not a command: {error}", "quote it as a shell would") from None
    if found is not None:
        raise WrongValueError(f"{text!r}: {found[0]}", found[1])
    named = [name for part in parts for name in names_in_braces(part)]
    if "port" not in named:
        hint = "write {port} where the command takes the port that it is to listen on"
        raise WrongValueError(f"{text!r} has no {{port}}", hint)
    for name in named:
        if name not in FILLED:
            raise WrongValueError(f"{{{name}}} means nothing", "known are {port}, {cpus} and {scratch}")
    return parts


def _command(text: str) -> str:
    read_command(text)
    return text


class ProjectSchema(Schema):
    """`redline.yaml`, in a repository: how its server is built, started and asked."""

    build: str | None = Field(
        default=None,
        min_length=1,
        description="commands for `sh`, which build a fresh checkout; the first that fails ends the build",
        examples=["cargo build --release --locked"],
    )
    start: Annotated[str, AfterValidator(_command)] = Field(
        description="the command that starts the server, without a shell; {port}, {cpus} and {scratch} are filled in",
        examples=["target/release/server --port {port}"],
    )
    runtime: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")] | None = Field(
        default=None,
        description="what runs it, such as native or jvm; default: jvm if the command is java, else what is seen once "
        "it runs",
        examples=["jvm"],
    )
    ready: ReadySchema | None = Field(
        default=None, description="the request that a ready server answers; default: that of `check`, if it is a GET"
    )
    stop: StopSchema | None = Field(default=None, description="how it is stopped")
    check: OneRequestSchema | None = Field(
        default=None,
        description="the request of the load and the right answer; default: `get: /` with status 200",
        examples=[{"get": "/items", "expect": {"status": 200}}],
    )
