"""The schema of `catalogue/libraries.yaml`: the libraries that profiles are counted for."""

from pydantic import Field

from redline.model import Library
from redline.suite.schema.types import Schema


class LibrariesSchema(Schema):
    """`catalogue/libraries.yaml`: names for the frames and threads of profiles. Of two that fit, the first counts."""

    libraries: list[Library] = Field(min_length=1, description="libraries, what a runtime needs, and the kernel")
