"""What is sent: the lists of requests, as each tool takes them. Pure."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

DIFFERENT = 100
BODY_EVERY = 10
BODY = '{"name":"green tea","amount":3,"note":"' + "x" * 159 + '"}'
"""200 bytes, as a small document has."""


@dataclass(frozen=True)
class Send:
    """A request; the server answers every one of them with 200."""

    path: str
    body: str = ""

    @property
    def method(self) -> str:
        """POST with a body, else GET."""
        return "POST" if self.body else "GET"


def plain() -> tuple[Send, ...]:
    """The same GET again and again."""
    return (Send("/path0"),)


def mix() -> tuple[Send, ...]:
    """100 requests as an API has them, one in ten with a body."""
    return tuple(
        Send("/orders", BODY) if n % BODY_EVERY == 0 else Send(f"/items/{n}?color=green&page={n % 7}")
        for n in range(DIFFERENT)
    )


def as_list(sends: Sequence[Send]) -> str:
    """A list for `redline load --requests`, in JSON, each as often as the others."""
    return json.dumps(
        [
            {"name": f"request{n}", "method": send.method, "path": send.path}
            | ({"body": send.body} if send.body else {})
            for n, send in enumerate(sends)
        ]
    )


def as_lines(sends: Sequence[Send]) -> str:
    """Method, path and body on a line, for the simulation of Gatling here."""
    return "".join(f"{send.method} {send.path}{' ' if send.body else ''}{send.body}\n" for send in sends)


def as_urls(sends: Sequence[Send], base: str) -> str:
    """A URL on each line, for oha and h2load, which send no bodies then."""
    return "".join(f"{base}{send.path}\n" for send in sends)


def as_targets(sends: Sequence[Send], base: str) -> str:
    """Targets of Vegeta in JSON, whose bodies are in base64."""
    return "".join(
        json.dumps(
            {"method": send.method, "url": base + send.path}
            | ({"body": base64.b64encode(send.body.encode()).decode()} if send.body else {})
        )
        + "\n"
        for send in sends
    )


def as_lua(sends: Sequence[Send]) -> str:
    """A script of wrk, which makes the requests before the load and sends them in turn."""
    made = "".join(
        f"  each[#each + 1] = wrk.format({send.method!r}, {send.path!r}, nil, {send.body!r})\n"
        if send.body
        else f"  each[#each + 1] = wrk.format('GET', {send.path!r})\n"
        for send in sends
    )
    init = f"local each, n = {{}}, 0\ninit = function(args)\n{made}end\n"
    return f"{init}request = function()\n  n = n % #each + 1\n  return each[n]\nend\n"


def as_hyperfoil(sends: Sequence[Send], base: str, users: int, millis: int) -> str:
    """A benchmark of Hyperfoil in JSON, which is YAML: users that send the requests in turn, on a connection each.

    What it would add to each request on its own, a cookie jar and a header with the user's name, is off.
    """
    steps = [{"httpRequest": {send.method: send.path} | ({"body": send.body} if send.body else {})} for send in sends]
    always = {"users": users, "duration": f"{millis}ms", "scenario": [{"main": steps}]}
    return json.dumps(
        {
            "name": "traffic",
            "threads": 1,
            "http": {"host": base, "sharedConnections": users},
            "ergonomics": {"repeatCookies": False, "userAgentFromSession": False},
            "phases": [{"main": {"always": always}}],
        }
    )
