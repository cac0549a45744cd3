"""Output that neither fills the disk nor blocks its writer."""

import os


class CappedLog:
    """A log of bounded size: the first `head` bytes as they come, and in memory the last `tail` of the rest."""

    def __init__(self, fd: int, head: int, tail: int) -> None:
        self.fd, self.head, self.tail = fd, head, tail
        self.seen = 0
        self.written = 0
        self.last = b""

    def write(self, data: bytes) -> None:
        """Keep what belongs to the head, remember the rest. A full disk loses the log, never blocks the server."""
        now = data[: max(0, self.head - self.seen)]
        self.seen += len(data)
        if now:
            self.written += self._put(now, self.written)
        rest = data[len(now) :]
        if rest:
            self.last = rest[-self.tail :] if len(rest) >= self.tail else (self.last + rest)[-self.tail :]

    def settle(self) -> None:
        """Put the end of the output behind the head; may be called again when more has come."""
        if self.seen <= self.head:
            return
        dropped = self.seen - self.written - len(self.last)
        mark = f"\n[redline: {dropped} bytes of output were dropped here]\n".encode() if dropped else b""
        self._put(mark + self.last, self.written)

    def _put(self, data: bytes, offset: int) -> int:
        try:
            return os.pwrite(self.fd, data, offset)
        except OSError:
            return 0
