"""Messages on a WebSocket."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default


class WebSocket(Frozen):
    """How the body of a request is sent, as a message on a WebSocket, which its path and headers open.

    `echo`: the same message answers it. `next`: whatever message comes next does.
    """

    subprotocols: tuple[str, ...] = omitted_if_default((), "that are offered; the server has to choose one of them")
    message: Literal["text", "binary"] = Field(description="the kind of the message")
    answer: Literal["echo", "next"] = Field(default="echo", description="what answers the message")
    greeting: int = omitted_if_default(0, "messages that the server sends before the first that it is sent")
