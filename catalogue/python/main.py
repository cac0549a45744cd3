"""The petstore and WebSockets on FastAPI, as its tutorial writes them, served by uvicorn."""

import argparse
import asyncio
import time

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from pydantic import BaseModel


class Pet(BaseModel):
    """A pet, as the petstore of light-4j has it."""

    id: int
    name: str
    tag: str


app = FastAPI()


@app.get("/v1/pets")
async def pets() -> list[Pet]:
    """All pets."""
    return [Pet(id=1, name="catten", tag="cat"), Pet(id=2, name="doggy", tag="dog")]


@app.websocket("/ws/echo")
async def echo(socket: WebSocket) -> None:
    """The same messages."""
    await socket.accept()
    while (message := await socket.receive())["type"] == "websocket.receive":
        if message.get("text") is not None:
            await socket.send_text(message["text"])
        else:
            await socket.send_bytes(message["bytes"])


@app.websocket("/ws/ts")
async def push(socket: WebSocket) -> None:
    """The time since 1970 in ns, every 100 ms, until the client leaves."""
    await socket.accept()
    leaving = asyncio.create_task(socket.receive())
    due = time.monotonic()
    try:
        while True:
            due += 0.1
            done, _ = await asyncio.wait({leaving}, timeout=max(0.0, due - time.monotonic()))
            if done:
                if leaving.result()["type"] == "websocket.disconnect":
                    return
                leaving = asyncio.create_task(socket.receive())
            await socket.send_text(str(time.time_ns()))
    except WebSocketDisconnect:
        return
    finally:
        leaving.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--protocol", choices=("h1", "h1+tls"), default="h1")
    parser.add_argument("--tls", help="a folder with server.pem and server.key")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    over_tls = options.protocol == "h1+tls"
    uvicorn.run(
        "main:app",
        host=options.host,
        port=options.port,
        workers=options.workers,
        backlog=4096,  # a proxy may open a connection for each of thousands of requests at once
        access_log=False,
        log_level="warning",
        timeout_keep_alive=75,  # longer than any proxy keeps an idle connection, so that the proxy closes it
        ssl_certfile=f"{options.tls}/server.pem" if over_tls else None,
        ssl_keyfile=f"{options.tls}/server.key" if over_tls else None,
    )
