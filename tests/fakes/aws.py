"""A server's side of AWS's signatures: verify a request by its bytes alone, without the library that signs.

As in the documentation of AWS, "Create a signed AWS API request".
"""

import hashlib
import hmac
import re
from collections import defaultdict
from urllib.parse import quote, unquote

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


def wrong_signature(request: bytes, secret: str) -> str:
    """Say what is wrong with the signature of a request of HTTP/1.1; empty if it is right."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    headers = defaultdict[str, list[str]](list)
    for name, _, value in (each.partition(":") for each in lines):
        headers[name.lower()].append(" ".join(value.split()))
    parts = _AUTHORIZATION.fullmatch(",".join(headers["authorization"]))
    if parts is None:
        return f"it is not signed: {headers['authorization']}"
    _, day, region, service, signed, signature = parts.groups()
    at = headers["x-amz-date"][0]
    if not at.startswith(day) or "host" not in signed.split(";"):
        return f"{day} is not of {at}, or no host is signed"
    digest = hashlib.sha256(body).hexdigest()
    if headers["x-amz-content-sha256"] not in ([], [digest]):
        return "its body is another"
    path, _, query = target.partition("?")
    canonical = "\n".join(
        [
            method,
            quote(unquote(path), safe="/-_.~") if service == "s3" else quote(path, safe="/-_.~"),
            "&".join(
                sorted("=".join(quote(unquote(part), safe="-_.~") for part in _pair(pair)) for pair in _list(query))
            ),
            *(f"{name}:{','.join(headers[name])}" for name in signed.split(";")),
            "",
            signed,
            digest,
        ]
    )
    told = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            at,
            f"{day}/{region}/{service}/aws4_request",
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = f"AWS4{secret}".encode()
    for text in (day, region, service, "aws4_request"):
        key = hmac.digest(key, text.encode(), "sha256")
    right = hmac.new(key, told.encode(), "sha256").hexdigest()
    return "" if hmac.compare_digest(right, signature) else f"another signature is right for {canonical!r}"


def _list(query: str) -> list[str]:
    return query.split("&") if query else []


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value
