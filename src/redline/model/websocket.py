"""Messages on a WebSocket."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default


class WebSocket(Frozen):
    """How the body of a request is sent, as a message on a WebSocket, which its path and headers open.

    `echo`: the same message answers it. `next`: whatever message comes next does. `listen`: each request opens a
    WebSocket of its own, whose messages are a stream; the body is sent once, if there is one.
    """

    subprotocols: tuple[str, ...] = omitted_if_default((), "that are offered; the server has to choose one of them")
    compression: bool = omitted_if_default(
        default=False, description="permessage-deflate is offered, and the server has to agree"
    )
    message: Literal["text", "binary"] | None = omitted_if_default(None, "the kind of the message, if one is sent")
    answer: Literal["echo", "next", "listen"] = Field(default="echo", description="what answers the message")
    greeting: int = omitted_if_default(0, "messages that the server sends before the first that it is sent")
