"""The schema of containers in suites: what runs in one, its network and its limits."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from redline.model import Container
from redline.suite.schema.types import Memory, Schema, as_list, one_or_several

Place = Literal["process", "container"]


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
    image: Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._:/@-]*$")] | None = Field(
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
