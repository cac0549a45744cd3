"""The schema of containers in suites: what runs in one, its network and its limits; and servers by their containers."""

from pathlib import PurePath
from posixpath import normpath
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from redline.errors import WrongValueError
from redline.model import Container
from redline.model.catalogue import ComposeService, OwnImage
from redline.suite.schema.types import Memory, Schema, as_list, one_or_several

Place = Literal["process", "container"]
ImageName = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._:/@-]*$")]


class ContainedSchema(Schema):
    """A server by its image, or by its service in a compose file."""

    image: ImageName | None = Field(
        default=None,
        description="an image that is on this machine; a container of it starts with its own command",
        examples=["shop:1"],
    )
    compose: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a compose file, relative to this one; all of its services start for each start of the server",
        examples=["compose.yaml"],
    )
    service: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="the service of the compose file that is measured", examples=["web"]
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="the port on which the server listens in its container; default: the only one that its image "
        "exposes",
        examples=[8080],
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """A service is named with its port: a compose file says neither which is measured, nor which port is HTTP's."""
        if self.compose is not None:
            for key, example in (("service", "web"), ("port", "8080")):
                if getattr(self, key) is None:
                    message = f"`{key}` is missing, which a server by its `compose` file has"
                    raise WrongValueError(message, f"add it, such as `{key}: {example}`")
        return self

    @property
    def own_image(self) -> OwnImage | None:
        """The image, if it is one."""
        return None if self.image is None else OwnImage(name=self.image, port=self.port)

    def own_service(self, folder: str) -> ComposeService | None:
        """The service, if it is one; relative files are in a folder."""
        if self.compose is None or self.service is None or self.port is None:
            return None
        file = normpath(PurePath(folder) / self.compose)
        return ComposeService(file=file, service=self.service, port=self.port)


class ContainerSchema(Schema):
    """The container that a server or a proxy runs in."""

    network: Literal["host", "published"] = Field(
        default="host",
        description="host: the network of the machine; published: one of its own, with the port published on 127.0.0.1",
        examples=["published"],
    )
    cpus: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="CPU time as a number of cores, a quota; default: none", examples=[0.5]
    )
    memory: Memory | None = Field(default=None, description="without swap; default: no limit", examples=["512MiB"])
    pids: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="processes and threads; default: no limit", examples=[512]
    )
    image: ImageName | None = Field(
        default=None,
        description="an image that is on this machine, into which the build is mounted; default: an image of the "
        "build and what it needs",
        examples=["debian:12"],
    )

    def container(self) -> Container:
        """What it means."""
        return Container(
            network=self.network, cpus=self.cpus, memory_bytes=self.memory, pids=self.pids, image=self.image
        )


_PLACES = one_or_several({"enum": ["process", "container"]}, minItems=1)
Places = Annotated[list[Place], BeforeValidator(as_list), Field(min_length=1), _PLACES]


class PlacedSchema(Schema):
    """Where something runs. `places` has one value or, of an axis, several."""

    places: Places = Field(
        default=["process"],
        alias="in",
        description="where it runs: a process of this machine, or a container; for a server a list is an axis; "
        "default: process",
        examples=["container", ["process", "container"]],
        json_schema_extra={"default": "process"},
    )
    container: ContainerSchema | None = Field(
        default=None, description="the container's network and limits", examples=[{"network": "published", "cpus": 2}]
    )
