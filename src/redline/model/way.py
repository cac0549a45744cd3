"""The way to a running server: where connections go, if its URL does not say it, and from where they start."""

from typing import Literal

from pydantic import Field, model_validator

from redline.model.base import Frozen, omitted_if_default

Addresses = Literal["first", "all"]


class AccessPoint(Frozen):
    """Where connections go: a host and a port, or the file of a Unix socket."""

    host: str = omitted_if_default("")
    port: int = omitted_if_default(0)
    socket: str = omitted_if_default("", "the absolute path of a Unix socket")

    @model_validator(mode="after")
    def _one_kind(self) -> "AccessPoint":
        if bool(self.socket) == bool(self.host and self.port):
            raise ValueError("a place is either a host and a port, or a Unix socket")
        return self

    @property
    def text(self) -> str:
        """`127.0.0.1:8080`, `[::1]:8080`, `unix:/run/app.sock`."""
        if self.socket:
            return f"unix:{self.socket}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Proxy(Frozen):
    """An HTTP proxy that opens tunnels to the server. `user` and `password` name variables as `${NAME}`."""

    host: str
    port: int
    user: str = omitted_if_default("")
    password: str = omitted_if_default("", "names of variables, never the password itself")

    @property
    def text(self) -> str:
        """`127.0.0.1:3128`, `[::1]:3128`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Access(Frozen):
    """How connections reach a running server. The URL's host stays in `Host`, in SNI and in the certificate."""

    connect: tuple[AccessPoint, ...] = omitted_if_default((), "where connections go; empty: to the URL's host and port")
    addresses: Addresses = omitted_if_default("first", "of several addresses: the first that answers, or all in turn")
    sources: tuple[str, ...] = omitted_if_default((), "local addresses that connections start from, in turn")
    proxy: Proxy | None = omitted_if_default(
        None, "the HTTP proxy in between, which opens a tunnel for each connection"
    )

    def only(self, point: AccessPoint) -> "Access":
        """The same way to one of several addresses."""
        return self.model_copy(update={"connect": (point,), "addresses": "first"})

    @property
    def socket(self) -> str:
        """The path of the Unix socket; empty over TCP."""
        return next((place.socket for place in self.connect if place.socket), "")


class ClientCertificate(Frozen):
    """The certificate that the load shows to servers that ask for it. Its key stays in its file."""

    file: str = Field(description="a PEM file: the certificate, and those of its authorities")
    key_file: str = Field(description="a PEM file with its key, which is read for each load")
    sha256: str = Field(description="the SHA-256 of the certificate, in hex")
