"""The petstore on FastAPI, as its tutorial writes a path operation, served by uvicorn."""

import argparse

import uvicorn
from fastapi import FastAPI
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
