"""The schema of `server.yaml`: a family of servers, with their common keys at the top."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from redline.errors import WrongValueError
from redline.model import Library
from redline.model.catalogue import FILLED_BY_THE_LAB, Leg
from redline.quantities import clip
from redline.schema.http_texts import Headers
from redline.schema.shell import words_for_a_shell
from redline.schema.types import Http, Scalar, Schema, Wait

SERVER_NAME = r"^[a-z][a-z0-9_-]*$"
OPTION_NAME = r"^[a-z][a-z0-9_-]*$"
VERSION = r"^[0-9A-Za-z][A-Za-z0-9._-]*$"
RUNTIME = r"^[a-z][a-z0-9-]*$"
TARGET = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_SAFE_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _option_name(value: str) -> str:
    if value in FILLED_BY_THE_LAB:
        raise WrongValueError(f"`{value}` is filled in by the lab", "choose another name for the option")
    return value


def _for_a_program(words: list[str]) -> list[str]:
    if (advice := words_for_a_shell(words)) is not None:
        raise WrongValueError(*advice)
    return words


Command = Annotated[list[str], AfterValidator(_for_a_program)]
"""The words of a command, without syntax that needs a shell."""

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")]
"""A DNS name or an address, as TLS checks it against a certificate."""


def _relative(value: str) -> str:
    """Check a path below the build folder, or beside it."""
    if not value.strip():
        raise WrongValueError("is empty", "name a file, or leave it out")
    if not value.isprintable():
        raise WrongValueError(f"{value!r} has an invisible character", "name the file as `ls` shows it")
    if value.startswith("/"):
        hint = "write it relative to the build folder, such as `../shared/file`: that is right on every host"
        raise WrongValueError(f"`{clip(value)}` is an absolute path", hint)
    return value


def _glob(value: str) -> str:
    parts = _relative(value).split("/")
    if PurePosixPath(value).name in ("", ".."):
        message = f"`{clip(value)}` is a folder, and inputs are files"
        raise WrongValueError(message, f"write `{PurePosixPath(value) / '**'}` for all files below it")
    if any("**" in part and part != "**" for part in parts):
        raise WrongValueError(f"`{clip(value)}`: `**` stands alone between slashes", "write it like `src/**`")
    return value


RelativePath = Annotated[str, AfterValidator(_relative)]
Glob = Annotated[str, AfterValidator(_glob)]


class ToolSchema(Schema):
    """A tool that has to be on the PATH."""

    command: str = Field(min_length=1, description="the program's name", examples=["cargo"])
    version: list[str] = Field(
        default=[], description="a command that prints its version", examples=[["cargo", "--version"]]
    )
    hint: str = Field(min_length=1, description="how to install it")


class BuildSchema(Schema):
    """How a server is built. Missing keys come from its family."""

    run: Annotated[Command, Field(min_length=1)] | None = Field(
        default=None, description="the command, as a list", examples=[["cargo", "build", "--release"]]
    )
    folder: str | None = Field(
        default=None, description="where it runs, relative to the family's folder", examples=["."]
    )
    inputs: Annotated[list[Glob], Field(min_length=1)] | None = Field(
        default=None,
        description="files and globs; a change of their content rebuilds the server",
        examples=[["src/**"]],
    )
    outputs: Annotated[list[RelativePath], Field(min_length=1)] | None = Field(
        default=None,
        description="files or folders that the build creates; no globs",
        examples=[["target/release/hyper"]],
    )
    needs: list[ToolSchema] | None = Field(default=None, description="tools that have to be on the PATH")
    target: Annotated[str, Field(pattern=TARGET)] | None = Field(
        default=None,
        description="appended to `run`; one command builds all targets of the same `run` and `folder`",
        examples=["http4s-ember-vanilla"],
    )


class StartSchema(Schema):
    """How a built server is started; {port}, {folder}, {OPTION} and others in braces are filled in."""

    command: Command = Field(
        min_length=1, description="the command, as a list", examples=[["{folder}/server", "{port}"]]
    )
    env: dict[str, str] = Field(default={}, description="environment variables, as text")
    needs: list[ToolSchema] = Field(default=[], description="tools that have to be on the PATH")


class ReadySchema(Schema):
    """The request that a ready server answers."""

    path: Annotated[str, Field(pattern=r"^/[!-~]*$")] | None = Field(
        default=None, description="a path", examples=["/path0"]
    )
    headers: Headers | None = Field(
        default=None,
        description="headers by name; values are texts, or lists of texts; default in redline.yaml: those of `check`",
        examples=[{"Authorization": "Bearer secret"}],
    )
    status: Annotated[int, Field(ge=200, le=599)] | None = Field(default=None, description="200 to 599", examples=[200])
    within_ns: Wait | None = Field(
        default=None, alias="within", description="how long it may take; default: 10s", examples=["10s"]
    )


class StopSchema(Schema):
    """The time between SIGTERM and SIGKILL."""

    within_ns: Wait | None = Field(default=None, alias="within", description="default: 5s", examples=["5s"])


def option_values(values: list[Any]) -> list[Any]:
    """Check values that are distinct, and parts of file names."""
    plain = [str(value) for value in values]
    for text in plain:
        if not _SAFE_VALUE.fullmatch(text):
            raise WrongValueError(
                f"the value `{clip(text)}` is not safe in a file name",
                "use letters, digits, `.`, `_` and `-`, beginning with a letter or a digit",
            )
    if len(set(plain)) < len(plain):
        raise WrongValueError("a value is given twice", "remove one")
    return values


class OptionSchema(Schema):
    """An option of a server."""

    about: str = Field(default="", description="one line for `redline list`")
    values: Annotated[list[Scalar], AfterValidator(option_values)] = Field(
        min_length=1, description="the possible values", examples=[[1, 128]]
    )
    default: Scalar = Field(description="the default value", examples=[128])


Options = dict[Annotated[str, Field(pattern=OPTION_NAME), AfterValidator(_option_name)], OptionSchema]


Versions = dict[Annotated[str, Field(pattern=VERSION)], Annotated[str, Field(pattern=VERSION)]]


Legs = Annotated[list[Leg], Field(min_length=1)]


class ServedTlsSchema(Schema):
    """The certificate of a server on its legs with TLS."""

    ca: str | None = Field(
        default=None,
        min_length=1,
        description="a PEM file in the build's folder: the certificate's authority",
        examples=["ca.pem"],
    )
    server_name: ServerName | None = Field(
        default=None, description="the name in its certificate", examples=["localhost"]
    )


class SharedSchema(Schema):
    """The keys that may be at the top of a family, and at each server."""

    runtime: Annotated[str, Field(pattern=RUNTIME)] | None = Field(
        default=None, description="its runtime, such as native or jvm", examples=["native"]
    )
    build: BuildSchema | None = Field(default=None, description="how it is built")
    ready: ReadySchema | None = Field(default=None, description="the request that a ready server answers")
    stop: StopSchema | None = Field(default=None, description="how it is stopped")
    options: Options = Field(default={}, description="options by name")
    versions: Versions = Field(
        default={},
        description="versions by what follows the @ in `family.name@5`; the first is what the build itself has",
        examples=[{"4": "4.5.13", "5": "5.1.6"}],
    )
    http: Annotated[list[Http], Field(min_length=1)] | None = Field(
        default=None, description="the versions of HTTP that it supports; default: 1.1", examples=[[1.1, 2]]
    )
    tls: ServedTlsSchema | None = Field(
        default=None, description="its certificate; without `protocols`, present if it serves TLS only"
    )
    kind: Literal["server", "proxy"] | None = Field(
        default=None, description="a proxy is a hop of routes, in front of a server; default: server"
    )
    protocols: Legs | None = Field(
        default=None,
        description="the legs that it can serve; default: as `http` and `tls` say; {protocol} is the leg to serve",
        examples=[["h1", "h1+tls", "h2+tls"]],
    )
    upstream: Legs | None = Field(
        default=None, description="the legs that a proxy can use to the server behind it", examples=[["h1", "h1+tls"]]
    )


class EntrySchema(SharedSchema):
    """One server of a family."""

    about: str = Field(min_length=1, description="one line for `redline list`", examples=["hyper 1, one tokio runtime"])
    start: StartSchema = Field(
        description="how a built server is started", examples=[{"command": ["{folder}/server", "{port}"]}]
    )


class FamilySchema(SharedSchema):
    """`catalogue/<family>/server.yaml`: a family of servers."""

    about: str = Field(default="", description="one line about the family")
    servers: dict[Annotated[str, Field(pattern=SERVER_NAME)], EntrySchema] = Field(
        min_length=1, description="servers by name: lower-case letters, digits, - and _"
    )


class LibrariesSchema(Schema):
    """`catalogue/libraries.yaml`: names for the frames and threads of profiles. The first match counts."""

    libraries: list[Library] = Field(min_length=1, description="libraries, what a runtime needs, and the kernel")
