"""Names for the frames of a profile."""

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from redline.errors import WrongValueError
from redline.model.base import Frozen, omitted_if_default


class Library(Frozen):
    """A library by the names of its frames and threads; docs/concepts/profiles.md says how samples are counted.

    `symbols` and `threads` are regular expressions that match a whole name.
    """

    name: str = Field(min_length=1, description="what it is called in reports", examples=["tapir's interpreter"])
    packages: tuple[str, ...] = Field(
        default=(), description="packages, modules or crates, with all that is in them", examples=[["sttp.tapir"]]
    )
    symbols: tuple[str, ...] = Field(
        default=(), description="regular expressions of functions", examples=[["tcp_.*", "ip_.*"]]
    )
    threads: tuple[str, ...] = Field(
        default=(), description="regular expressions of threads of which everything is its own", examples=[["GC .*"]]
    )
    counts_for: Literal["itself", "caller"] = Field(
        default="itself", description="`caller`: what it does counts for the nearest library that called it"
    )
    callees: bool = omitted_if_default(
        default=False, description="native functions that it calls and that nobody names are its own"
    )
    kernel: bool = omitted_if_default(default=False, description="its symbols are functions of the kernel")

    @model_validator(mode="after")
    def _can_be_matched(self) -> Self:
        for field in ("symbols", "threads"):
            for pattern in getattr(self, field):
                try:
                    re.compile(pattern)
                except (re.error, RecursionError, OverflowError) as error:
                    message, hint = f"`{pattern}` is no regular expression: {error}", "escape special characters by \\"
                    raise WrongValueError(message, hint, field=field) from None
        if not (self.packages or self.symbols or self.threads):
            raise WrongValueError(f"nothing belongs to {self.name}", "name its `packages`", field="packages")
        return self
