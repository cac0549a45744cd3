"""Find secrets that must not be sent by accident in requests: cookies, tokens, passwords. Pure."""

import json
import re
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from itertools import chain
from urllib.parse import unquote_plus

_SECRET = re.compile(
    "accesskey|apikey|authentication|authkey|authorization|bearer|cookie|credential|csrf|jwt|passphrase|passw|"
    "privatekey|secret|sessid|sessionid|signature|token|xsrf"
)
"""Words that mark a name as a secret's, in lower case and without separators."""
_NAMES = frozenset({"auth", "key", "otp", "pass", "passcode", "pin", "pw", "pwd", "session", "sid", "sig"})
"""Words that are a secret's name only as the whole name: `sort_key` is not a secret."""
_HARMLESS_HEADERS = frozenset({"idempotency-key", "sec-websocket-key", "cache-key"})
_BEARER = re.compile(r"(?:bearer|basic|digest|negotiate|token)\s+\S", re.IGNORECASE)
_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")
"""A JSON Web Token (RFC 7519): its header is JSON, whose first bytes are always these."""
_ENCODED_FIELD = re.compile(r'(?:^|[&\s;"])([A-Za-z0-9_.%\[\]-]{1,80})=')
_PART_OF_FORM = re.compile(r'^Content-Disposition: form-data; name="([^"\r\n]{1,80})"', re.MULTILINE | re.IGNORECASE)
_IN_A_PATH = re.compile(r";\w*sess\w*=", re.IGNORECASE)
_DEEPEST = 40


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header holds a secret, by its name or by the form of its value."""
    if name.lower() in _HARMLESS_HEADERS:
        return False
    return is_secret_name(name) or _BEARER.match(value) is not None or has_token(value)


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether a header, or a parameter of a query or a body, holds a secret, by its name."""
    joined = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("x-"))
    return joined in _NAMES or _SECRET.search(joined) is not None


def without_secrets(target: str, keep: Container[str] = ()) -> tuple[str, list[str]]:
    """A path with its query, without parameters that hold secrets, and the names of those parameters."""
    path, mark, query = target.partition("?")
    if not mark:
        return target, []
    kept, names = list[str](), list[str]()
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        name = unquote_plus(name)
        is_secret = is_secret_name(name) or has_token(value)
        if is_secret and name.lower() not in keep:
            names.append(name)
        else:
            kept.append(pair)
    return (target, []) if not names else (f"{path}?{'&'.join(kept)}" if kept else path, names)


def has_token(text: str) -> bool:
    """Whether a text contains a JSON Web Token."""
    return "eyJ" in text and _TOKEN.search(text) is not None


def secret_in_path(path: str) -> bool:
    """Whether a path contains a token, or a session id as Java servers write it."""
    return has_token(path) or _IN_A_PATH.search(path) is not None


def secret_in_body(
    text: str, keep: Container[str] = (), is_secret: Callable[[str], bool] = is_secret_name
) -> str | None:
    """The name of the first field of JSON or of a form that holds a secret; None if there is none."""
    try:
        names = _names_of_json(json.loads(text))
        secret = next((name for name in names if is_secret(name) and name.lower() not in keep), None)
    except (ValueError, RecursionError):
        encoded = (unquote_plus(match[1]) for match in _ENCODED_FIELD.finditer(text))
        names = chain(encoded, (match[1] for match in _PART_OF_FORM.finditer(text)))
        secret = next((name for name in names if is_secret(name) and name.lower() not in keep), None)
    return "a token" if secret is None and has_token(text) and "token" not in keep else secret


def _names_of_json(value: object, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        for name, inner in value.items():
            if inner not in (None, "", [], {}):
                yield name
            yield from _names_of_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _names_of_json(inner, depth + 1)
