"""Where a server runs: in a container, with its network and its limits."""

from typing import Literal

from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import slug_text

Network = Literal["host", "published"]


class Container(Frozen):
    """A container that a server runs in. None means no limit of its own; `memory_bytes` is in bytes."""

    network: Network = omitted_if_default(
        "host", description="host: that of the machine; published: one of its own, reached through a port of the host"
    )
    cpus: float | None = omitted_if_default(None, gt=0, description="cores' worth of CPU time, a quota")
    memory_bytes: int | None = omitted_if_default(None, gt=0, description="memory, of which none is swapped")
    pids: int | None = omitted_if_default(None, gt=0, description="processes and threads")
    image: str | None = omitted_if_default(
        None, description="an image of the user's, into which the build is mounted; absent: one of the build alone"
    )

    @property
    def slug(self) -> str:
        """`container`, or `container-published-cpus=0.5` with what differs from its defaults."""
        cpus = None if self.cpus is None else f"{self.cpus:g}"
        memory = None if self.memory_bytes is None else _size(self.memory_bytes)
        limits = {"cpus": cpus, "memory": memory, "pids": self.pids}
        parts = [f"{name}={value}" for name, value in limits.items() if value is not None]
        if self.image is not None:
            # slug_text makes a name and a hash of what is a path: so images of one name stay distinct.
            parts.append(f"image={slug_text('/' + self.image)}")
        network = [self.network] if self.network != "host" else []
        return "-".join(["container", *network, *parts])


def _size(count: int) -> str:
    """Exactly, in the largest binary unit of which it is a multiple: `64MiB`."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return f"{count}B"
