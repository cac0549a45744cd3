"""TLS: what a server serves, and what a load uses."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen

HttpVersion = Literal["1.1", "2"]
TlsVersion = Literal["1.2", "1.3"]


class ServedTls(Frozen):
    """The certificate of a TLS server: its authority (`ca`, in the build's folder) and its name."""

    ca: str | None = Field(default=None, description="a PEM file; default: the system's authorities")
    server_name: str | None = None


class Tls(Frozen):
    """A load's TLS settings. `ca_pem` is trusted in place of the authority in the server's entry, or the system's."""

    ca_pem: str | None = None
    insecure: bool = Field(default=False, description="any certificate is accepted, so any server may have answered")
    server_name: str | None = None
    versions: tuple[TlsVersion, ...] = Field(default=("1.2", "1.3"), min_length=1)
    resumption: bool = True

    @property
    def slug(self) -> str:
        """The settings that differ from their defaults, as a part of a variant's slug; empty if none does."""
        parts = ["insecure"] if self.insecure else []
        parts += [f"tls{self.versions[0]}"] if len(self.versions) == 1 else []
        parts += [] if self.resumption else ["no-resumption"]
        return "+".join(parts)
