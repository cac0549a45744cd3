"""The schema of the way to a server: TLS, addresses, sources and a proxy."""

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from redline.errors import WrongValueError
from redline.model.way import Addresses
from redline.schema.ciphers import check_ciphers
from redline.schema.places import read_place, read_proxy, read_source
from redline.schema.server import ServerName
from redline.schema.types import Schema, TlsEdition, as_list, one_or_several


class TlsSchema(Schema):
    """The TLS settings for a server that serves TLS."""

    ca: str | None = Field(
        default=None,
        min_length=1,
        description="a PEM file of authorities, in the suite's folder, instead of the catalogue's",
        examples=["ca.pem"],
    )
    insecure: bool = Field(default=False, description="accept any certificate; every report says so")
    server_name: ServerName | None = Field(
        default=None, description="the name that the certificate must have", examples=["localhost"]
    )
    versions: list[TlsEdition] = Field(
        default=["1.2", "1.3"], min_length=1, description="versions that may be negotiated", examples=[[1.3]]
    )
    resumption: bool = Field(default=True, description="whether a connection may resume an earlier session")
    ciphers: Annotated[list[str], BeforeValidator(as_list), one_or_several({"type": "string"})] = Field(
        default=[],
        description="cipher suites that may be negotiated, as IANA or OpenSSL name them; default: all",
        examples=[["TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"]],
    )
    cert: str | None = Field(
        default=None,
        min_length=1,
        description="a PEM file: the certificate that the load shows to a server that asks for it",
        examples=["client.pem"],
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        description="a PEM file with the key of `cert`; default: the file of `cert`",
        examples=["client.key"],
    )

    @model_validator(mode="after")
    def _key_of_a_certificate(self) -> Self:
        if self.key is not None and self.cert is None:
            raise WrongValueError("a key without its certificate", "write `cert` too", field="key")
        return self

    @model_validator(mode="after")
    def _suites_of_its_versions(self) -> Self:
        check_ciphers(self.ciphers, [str(version) for version in self.versions])
        return self


def _place(text: str) -> str:
    read_place(text)
    return text


def _source(text: str) -> str:
    return read_source(text)


def _proxy(text: str) -> str:
    read_proxy(text)
    return text


_TEXTS = one_or_several({"type": "string"}, minItems=1)
Places = Annotated[list[Annotated[str, AfterValidator(_place)]], BeforeValidator(as_list), Field(min_length=1), _TEXTS]
Sources = Annotated[
    list[Annotated[str, AfterValidator(_source)]], BeforeValidator(as_list), Field(min_length=1), _TEXTS
]


class WaySchema(Schema):
    """How connections reach a running server, where its URL does not say it."""

    connect: Places | None = Field(
        default=None,
        description="where connections go in place of the URL's host and port: a host with a port, or a Unix socket; "
        "the URL's host stays the name in `Host` and in the certificate",
        examples=["127.0.0.1:8443", "unix:/run/app.sock", ["10.0.0.1:8080", "10.0.0.2:8080"]],
    )
    addresses: Addresses = Field(
        default="first", description="of several addresses: the first that answers, or all of them in turn"
    )
    sources: Sources | None = Field(
        default=None,
        description="local addresses that connections start from, in turn; default: as the kernel chooses",
        examples=["127.0.0.2"],
    )
    proxy: Annotated[str, AfterValidator(_proxy)] | None = Field(
        default=None,
        description="an HTTP proxy in between, which opens a tunnel (CONNECT) for each connection; "
        "its password is a variable of the environment",
        examples=["http://127.0.0.1:3128", "http://me:${PROXY_PASSWORD}@127.0.0.1:3128"],
    )
