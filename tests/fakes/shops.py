"""A shop with a login, whose answers depend on what was answered before."""

import json
import re
import socket
import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Shop:
    """A habit of `targets`: `POST /login` gives a cookie and a token, and every other path asks for both.

    A session holds for `uses` requests. Items are answered with 200, orders with 201. `/` is for everybody. `asked`
    counts paths and statuses.
    """

    uses: int = 1_000_000
    asked: "Counter[tuple[str, int]]" = field(default_factory=Counter)
    users: "Counter[str]" = field(default_factory=Counter)
    _left: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, connection: socket.socket) -> None:
        """Answer the requests of a connection, whose bodies come with their heads."""
        while asked := connection.recv(65536).decode():
            head, _, body = asked.partition("\r\n\r\n")
            with self._lock:
                status, more, answer = self._answer(head, body)
                self.asked[head.split()[1], status] += 1
            content = json.dumps(answer).encode()
            lines = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode()
            connection.sendall(lines + content)

    def _answer(self, head: str, body: str) -> tuple[int, str, object]:
        path = head.split()[1]
        if path == "/login":
            wanted = json.loads(body)
            if wanted["password"] != f"pw-{wanted['user']}":
                return 403, "", {"error": "wrong password"}
            self.users[wanted["user"]] += 1
            sid = str(len(self._left))
            self._left[sid] = self.uses
            return 200, f"Set-Cookie: sid={sid}; Path=/\r\n", {"token": f"t-{sid}"}
        if path == "/":
            return 200, "", {}
        sid = (re.search(r"(?im)^cookie: sid=(\d+)", head) or ["", ""])[1]
        if f"t-{sid}" not in head or self._left.get(sid, 0) <= 0:
            return 401, "", {}
        self._left[sid] -= 1
        if path == "/orders":
            return (201, "", {}) if json.loads(body)["item"] == "i/7 ü" else (400, "", {})
        return 200, "", {"items": [{"id": "i/7 ü"}]}
