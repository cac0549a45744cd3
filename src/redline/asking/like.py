"""The meaning of the command line of another load generator: what `load --like` measures."""

from collections.abc import Mapping

from redline.lazily import dataclass
from redline.schema.document import Plain


@dataclass(frozen=True)
class Like:
    """The meaning of another tool's command line.

    `flags` are fields of `LoadFlags` with their values. `says` is what the tool does not report of such a load,
    `ignored` the options, as written, that have no counterpart here and need none.
    `requests` are several in place of one, as a list has them. `has_deviations`: it asks for mean, standard deviation
    and the share within it.
    """

    tool: str
    flags: Mapping[str, object]
    says: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    requests: tuple[Plain, ...] = ()
    has_deviations: bool = False
