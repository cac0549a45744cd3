"""The schema of containers in suites: content, network and limits; and of servers given by an image or service."""

from pathlib import PurePath
from posixpath import normpath
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from redline.errors import WrongValueError
from redline.model import Container
from redline.model.catalogue import ComposeService, Fresh, OwnImage
from redline.schema.types import Memory, Schema, as_list, one_or_several

Place = Literal["process", "container"]
Cpus = Annotated[float, Field(gt=0)]
ImageName = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._:/@-]*$")]


class ContainedSchema(Schema):
    """A server given by its image, or by its service in a compose file."""

    image: ImageName | None = Field(
        default=None,
        description="an image that is on this machine; a container of it starts with its own command",
        examples=["shop:1"],
    )
    compose: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a compose file, relative to this file; all of its services start for each start of the server",
        examples=["compose.yaml"],
    )
    service: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="the service of the compose file that is measured", examples=["web"]
    )
    fresh: Fresh = Field(
        default="all",
        description="what starts for each start of the server: all services of the compose file, or `service` and what "
        "depends on it alone, while the others start once and go on",
        examples=["service"],
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="the port on which the server listens in its container; default: the only port that its image "
        "exposes",
        examples=[8080],
    )
    cpus: Cpus | None = Field(
        default=None, description="CPU time of the image as a number of cores, a quota; default: none", examples=[0.5]
    )
    memory: Memory | None = Field(
        default=None, description="memory of the image, without swap; default: no limit", examples=["512MiB"]
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Check that a compose file comes with a service and a port: the file does not say which of them to measure."""
        if self.compose is not None:
            for key, example in (("service", "web"), ("port", "8080")):
                if getattr(self, key) is None:
                    message = f"`{key}` is missing: a server with `compose` needs it"
                    raise WrongValueError(message, f"add it, such as `{key}: {example}`")
        return self

    @property
    def own_image(self) -> OwnImage | None:
        """The user's image, if there is one."""
        if self.image is None:
            return None
        return OwnImage(name=self.image, port=self.port, cpus=self.cpus, memory_bytes=self.memory)

    def own_service(self, folder: str) -> ComposeService | None:
        """The compose service, if there is one; relative files are in `folder`."""
        if self.compose is None or self.service is None or self.port is None:
            return None
        file = normpath(PurePath(folder) / self.compose)
        return ComposeService(file=file, service=self.service, port=self.port, fresh=self.fresh)


class ContainerSchema(Schema):
    """The container that a server or a proxy runs in."""

    network: Literal["host", "published"] = Field(
        default="host",
        description="host: the machine's network; published: its own network, with the port published on 127.0.0.1",
        examples=["published"],
    )
    cpus: Cpus | None = Field(
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
        """The value of the model."""
        return Container(
            network=self.network, cpus=self.cpus, memory_bytes=self.memory, pids=self.pids, image=self.image
        )


_PLACES = one_or_several({"enum": ["process", "container"]}, minItems=1)
Places = Annotated[list[Place], BeforeValidator(as_list), Field(min_length=1), _PLACES]


class PlacedSchema(Schema):
    """Where a server or proxy runs. `places` has one value, or several for an axis."""

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
