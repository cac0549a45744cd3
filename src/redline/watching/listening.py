"""What becomes of the connections to a server's listeners, by the kernel's counts per socket."""

from collections.abc import Container, Iterable

from redline.linux import procfs, sockets
from redline.watching.tree import Tally


class Listening:
    """The listeners at these addresses: attempts that they dropped, and connections that nobody accepted or closed."""

    def __init__(self, at: Iterable[sockets.At]) -> None:
        self._at, self._drops = frozenset(at), Tally()

    @classmethod
    def of(cls, pids: Iterable[int]) -> "Listening | None":
        """Return the listeners of these processes; None without any in this network namespace."""
        held = {inode for pid in pids for inode in procfs.open_sockets(pid) or ()}
        try:
            at = frozenset(listener.local for listener in sockets.listeners() if listener.inode in held)
        except OSError:
            return None
        return cls(at) if at else None

    def sample(self) -> dict[str, int]:
        """Return the sum of drops until now, closed sockets included, and those that wait in queues now.

        Empty if the kernel does not tell.
        """
        try:
            own = [listener for listener in sockets.listeners() if listener.local in self._at]
        except OSError:
            return {}
        drops = self._drops.total({listener.inode: listener.drops for listener in own})
        return {"listen_drops": drops, "listen_queue": sum(listener.waiting for listener in own)}

    def half_closed(self) -> dict[str, int]:
        """Return how many connections to them are in CLOSE-WAIT; empty if the kernel does not tell.

        Every one is looked at, of all programs: this takes milliseconds where there are many.
        """
        try:
            return {"close_wait": sum(_is_at(tcp.local, self._at) for tcp in sockets.half_closed())}
        except OSError:
            return {}


def _is_at(end: sockets.At, listening: Container[sockets.At]) -> bool:
    """Whether the local end of a connection is that of a listener, which may listen at any address."""
    return end in listening or any(sockets.At(ip, end.port) in listening for ip in sockets.ANY)
