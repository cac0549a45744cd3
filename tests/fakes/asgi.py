"""An application for servers of ASGI: it echoes messages on a WebSocket, and on `/ticks` pushes 25 of its own."""

from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ready"})
    elif scope["type"] == "websocket" and scope["path"] == "/missing":
        await send({"type": "websocket.close"})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
        for number in range(25 if scope["path"] == "/ticks" else 0):
            await send({"type": "websocket.send", "text": f"tick {number}"})
        while (event := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": event["text"], "bytes": event.get("bytes")})
