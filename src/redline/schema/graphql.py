"""Whether a request is one of GraphQL: its answers have errors in their body, with status 200. Pure."""

import json
from urllib.parse import parse_qsl

from redline.model import Body

_LONGEST = 1024 * 1024


def is_graphql_body(body: Body) -> bool:
    """Whether a body is JSON with a query of GraphQL, the name of a stored one, or a list of these."""
    if body.size is not None:
        return False
    content = body.content()
    if len(content) > _LONGEST or not (b"query" in content or b"persistedQuery" in content):
        return False
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(map(_is_query, items))


def is_graphql_path(path: str) -> bool:
    """Whether a path has a query of GraphQL as its parameter `query`."""
    query = path.partition("?")[2]
    try:
        return any(name == "query" and _is_document(value) for name, value in parse_qsl(query, max_num_fields=1000))
    except ValueError:
        return False


def _is_query(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    extensions = value.get("extensions")
    return _is_document(value.get("query")) or (isinstance(extensions, dict) and "persistedQuery" in extensions)


def _is_document(query: object) -> bool:
    """Whether a text may be a document of GraphQL; what people search for has no braces (GraphQL, 2.8)."""
    return isinstance(query, str) and "{" in query and query.rstrip().endswith("}")
