"""The schema of `redline.yaml`: how revisions of a repository are built, started and asked."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from redline.errors import WrongValueError
from redline.suite.schema.scenario import NAME, OneRequestSchema, WeightedSchema
from redline.suite.schema.server import RUNTIME, ReadySchema, StopSchema
from redline.suite.schema.shell import CommandLine
from redline.suite.schema.types import Schema

MIX = "mix"
"""The scenario of all requests by their weights."""


class NamedSchema(WeightedSchema):
    """A request with a name: a scenario of its own."""

    name: Annotated[str, Field(pattern=NAME)] = Field(
        description="a letter, then letters, digits, - and _", examples=["items"]
    )


def check_names(requests: list[NamedSchema]) -> list[NamedSchema]:
    """Raises WrongValueError for a name that is given twice, or that is that of the mix."""
    names = [request.name for request in requests]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise WrongValueError(f"the request `{name}` is given twice", "give one of them another name")
        if name == MIX and len(names) > 1:
            raise WrongValueError(f"`{MIX}` is the name of all requests by weight", "give it another name")
    return requests


Requests = Annotated[list[NamedSchema], Field(min_length=1)]


class ProjectSchema(Schema):
    """`redline.yaml`, in a repository: how its server is built, started and asked."""

    build: str | None = Field(
        default=None,
        min_length=1,
        description="commands for `sh`, which build a fresh checkout; the first that fails ends the build",
        examples=["cargo build --release --locked"],
    )
    start: CommandLine = Field(
        description="the command that starts the server, without a shell; {port}, {cpus} and {scratch} are filled in",
        examples=["target/release/server --port {port}"],
    )
    runtime: Annotated[str, Field(pattern=RUNTIME)] | None = Field(
        default=None,
        description="what runs it, such as native or jvm; default: jvm if the command is java, else what is seen once "
        "it runs",
        examples=["jvm"],
    )
    ready: ReadySchema | None = Field(
        default=None, description="the request that a ready server answers; default: the first one, if it is a GET"
    )
    stop: StopSchema | None = Field(default=None, description="how it is stopped")
    check: OneRequestSchema | None = Field(
        default=None,
        description="the request of the load and the right answer; default: `get: /` with status 200",
        examples=[{"get": "/items", "expect": {"status": 200}}],
    )
    requests: Requests | None = Field(
        default=None,
        description="in place of `check`: several requests by name; each is compared, and all of them by weight",
        examples=[[{"name": "items", "get": "/items", "weight": 3}]],
    )

    @model_validator(mode="after")
    def _asks_in_one_way(self) -> Self:
        if self.check is not None and self.requests is not None:
            raise WrongValueError("`check` is the only request, and there are `requests`", "remove one of the two")
        check_names(self.requests or [])
        return self
