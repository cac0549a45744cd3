"""The headers of requests as the engine gets them: with secrets, and signed in. No recording holds them."""

import base64
from collections.abc import Iterable
from urllib.parse import quote, unquote

from redline.driving.secrets import secrets_in, with_secrets
from redline.errors import UsageError
from redline.model import Request
from redline.model.catalogue import passed_names
from redline.model.sign_in import UNSIGNED, AwsSignIn, BasicSignIn
from redline.model.template import for_engine, sent

_LIKE_S3 = frozenset({"s3", "s3-object-lambda", "s3-outposts"})
"""Services that take a path as it is sent; all others encode it once more."""


def headers_of(request: Request, host: str) -> list[list[str]]:
    """The headers of a request to a server with this `Host`, as templates of the engine.

    Secrets that they name as `${NAME}` are filled in, and braces in them mean nothing. A signature of AWS is made now,
    and the `Host` that it covers is among the headers. Raises UsageError for a variable that is not set, and without
    the library that signs.
    """
    lines = [[name, _template(name, value)] for name, value in request.header_lines]
    match request.auth:
        case BasicSignIn(user=user, password=password):
            pair = ":".join(with_secrets(text, "`auth` with `basic`") for text in (user, password))
            lines.append(["Authorization", f"Basic {base64.b64encode(pair.encode(errors='surrogateescape')).decode()}"])
        case AwsSignIn() as aws:
            unsigned = [line for line in lines if line[0].lower() in UNSIGNED]
            lines = [[name, _literal(value)] for name, value in _signed(request, aws, host)] + unsigned
    return lines


def secrets_of(request: Request) -> dict[str, str]:
    """The values of all `${NAME}` in the headers and the sign-in of a request. Raises UsageError as `headers_of`."""
    return secrets_in(_texts_of(request))


def names_of(request: Request) -> set[str]:
    """The names of all `${NAME}` in the headers and the sign-in of a request."""
    return {name for _, text in _texts_of(request) for name in passed_names(text)}


def _texts_of(request: Request) -> list[tuple[str, str]]:
    texts = [(f"the header {name}", value) for name, value in request.header_lines]
    if request.auth is not None:
        texts += [("`auth`", text) for text in request.auth.texts]
    return texts


def _template(name: str, value: str) -> str:
    where = f"the header {name}"
    return with_secrets(value, where, literal=for_engine, secret=lambda secret: _literal(_printable(secret, where)))


def _sent(name: str, value: str) -> str:
    where = f"the header {name}"
    return with_secrets(value, where, literal=sent, secret=lambda secret: _printable(secret, where))


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _printable(secret: str, where: str) -> str:
    if not secret.isprintable():
        hint = "see whether a line break is at its end: `NAME=$(cat FILE)` leaves that out"
        raise UsageError(f"{where}: its secret has a character that no header may have", hint=hint)
    return secret


def _signed(request: Request, aws: AwsSignIn, host: str) -> Iterable[tuple[str, str]]:
    """The headers that a signature covers, and those that it brings along."""
    try:
        from botocore.auth import S3SigV4Auth, SigV4Auth  # noqa: PLC0415 - an extra, which is needed for this alone
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415
        from botocore.credentials import Credentials  # noqa: PLC0415
    except ImportError:
        hint = "install the package `botocore`: uv tool install … --with botocore; in a checkout, uv sync --extra aws"
        raise UsageError("requests to AWS cannot be signed without the extra `aws`", hint=hint) from None
    path, _, query = sent(request.path).partition("?")
    likes_s3 = aws.service in _LIKE_S3
    asked = AWSRequest(
        method=request.method,
        # Only path and query of it are signed. S3 signs a path that is encoded once, however it is sent.
        url=f"http://host{quote(unquote(path), safe='/-._~') if likes_s3 else path}",
        params=[(unquote(name), unquote(value)) for name, _, value in _pairs(query)],
        data=b"" if request.body is None else request.body.content(),
    )
    lines = [(name, _sent(name, value)) for name, value in request.header_lines if name.lower() not in UNSIGNED]
    if not any(name.lower() == "host" for name, _ in lines):
        lines.insert(0, ("Host", host))
    for name, value in lines:
        asked.headers[name] = value  # this keeps headers of the same name
    where = "the signature of AWS"
    key, secret, session = (_printable(with_secrets(text, where), where) for text in (aws.key, aws.secret, aws.session))
    signer = (S3SigV4Auth if likes_s3 else SigV4Auth)(
        Credentials(key, secret, session or None), aws.service, aws.region
    )
    signer.add_auth(asked)
    return [(name, str(value)) for name, value in asked.headers.items()]


def _pairs(query: str) -> Iterable[tuple[str, str, str]]:
    return (pair.partition("=") for pair in query.split("&") if pair)
