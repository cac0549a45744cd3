"""What is sent: the lists of requests, as each tool takes them. Pure."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DIFFERENT = 100
BODY_EVERY = 10
BODY = '{"name":"green tea","amount":3,"note":"' + "x" * 159 + '"}'
"""200 bytes, as a small document has."""


TOKEN = "X-Token"


@dataclass(frozen=True)
class Send:
    """A request; the server answers every one of them with 200.

    In a journey, one request `takes` the token of its answer, and those with `token` send it in a header.
    """

    path: str
    body: str = ""
    takes: bool = False
    token: bool = False

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


def journey() -> tuple[Send, ...]:
    """A visitor who logs in, looks at two things, orders, and looks at the order: five steps.

    Each step after the first is answered only with the cookie and the token of the first.
    """
    return (
        Send("/login", "ann", takes=True),
        Send("/items?page=1", token=True),
        Send("/items/7?color=green", token=True),
        Send("/orders", BODY, token=True),
        Send("/orders/7", token=True),
    )


def as_journey(sends: Sequence[Send]) -> str:
    """A journey for `redline load --requests`, in JSON; each is made by a new visitor."""
    steps = []
    for n, send in enumerate(sends):
        step: dict[str, Any] = {"name": f"step{n}", "method": send.method, "path": send.path}
        step |= {"body": send.body} if send.body else {}
        step |= {"take": {"token": {"json": "/token"}}} if send.takes else {}
        step |= {"headers": {TOKEN: "{take:token}"}} if send.token else {}
        steps.append(step)
    return json.dumps({"journey": {"steps": steps}})


def as_unlinked(sends: Sequence[Send]) -> str:
    """The requests of a journey as a plain list in JSON: with the same bytes, and nothing taken or kept."""
    fixed = {"Cookie": "sid=s123456", TOKEN: "910a2dec89025cc1"}
    return json.dumps(
        [
            {"name": f"request{n}", "method": send.method, "path": send.path}
            | ({"body": send.body} if send.body else {})
            | ({"headers": fixed} if send.token else {})
            for n, send in enumerate(sends)
        ]
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

    What it would add to each request on its own is off: a header with the user's name, and outside of journeys a jar of
    cookies.
    """
    steps = [{"httpRequest": _hyperfoil_step(send)} for send in sends]
    always = {"users": users, "duration": f"{millis}ms", "scenario": [{"main": steps}]}
    cookies = any(send.takes for send in sends)
    return json.dumps(
        {
            "name": "traffic",
            "threads": 1,
            "http": {"host": base, "sharedConnections": users},
            "ergonomics": {"repeatCookies": cookies, "userAgentFromSession": False},
            "phases": [{"main": {"always": always}}],
        }
    )


def _hyperfoil_step(send: Send) -> dict[str, Any]:
    step: dict[str, Any] = {send.method: send.path}
    step |= {"body": send.body} if send.body else {}
    step |= {"handler": {"body": {"json": {"query": ".token", "toVar": "token"}}}} if send.takes else {}
    return step | ({"headers": {TOKEN: "${token}"}} if send.token else {})
