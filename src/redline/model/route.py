"""How a server is spoken to over TLS: what it serves, and what a load asks for."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen

HttpVersion = Literal["1.1", "2"]
TlsVersion = Literal["1.2", "1.3"]


class ServedTls(Frozen):
    """What a server that speaks TLS shows: who signed it (`ca`, in the build's folder) and for which name."""

    ca: str | None = Field(default=None, description="a PEM file; the system's own authorities when there is none")
    server_name: str | None = None


class Tls(Frozen):
    """What a load asks of TLS. `ca_pem` is trusted in place of what the server's entry, or else the system, says."""

    ca_pem: str | None = None
    insecure: bool = Field(default=False, description="any certificate is taken, so it is not known who answered")
    server_name: str | None = None
    versions: tuple[TlsVersion, ...] = Field(default=("1.2", "1.3"), min_length=1)
    resumption: bool = True

    @property
    def slug(self) -> str:
        """What is unusual about it, as a part of a variant's slug; empty when nothing is."""
        told = ["insecure"] if self.insecure else []
        told += [f"tls{self.versions[0]}"] if len(self.versions) == 1 else []
        told += [] if self.resumption else ["no-resumption"]
        return "+".join(told)
