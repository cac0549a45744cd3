"""A document as YAML text. Pure."""

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from redline.schema.document import Plain
from redline.schema.json_text import WrittenNumber

_IN_ONE_LINE = 100
"""The longest server, request or load, in characters, that is written on a single line."""


def formatted(document: Plain) -> str:
    """Format a document as people write it: a line for every short server, request and load."""
    yaml = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(WrittenNumber, _as_it_stands)
    stream = StringIO()
    yaml.dump(_laid_out(document, depth=0), stream)
    return stream.getvalue()


def _as_it_stands(representer: Any, number: WrittenNumber) -> Any:
    kind = "int" if number.text == "-0" else "float"
    return representer.represent_scalar(f"tag:yaml.org,2002:{kind}", number.text)


def _laid_out(value: Plain, depth: int) -> Any:
    if isinstance(value, str) and (not value.isprintable() or value.startswith((":", "?"))):
        return DoubleQuotedScalarString(value)  # ruamel.yaml writes some of these in a form that it reads otherwise
    if not isinstance(value, (dict, list)):
        return value
    node = (
        CommentedMap({_laid_out(key, 0): _laid_out(child, depth + 1) for key, child in value.items()})
        if isinstance(value, dict)
        else CommentedSeq([_laid_out(child, depth + 1) for child in value])
    )
    if depth > 1 and len(repr(value)) <= _IN_ONE_LINE:
        node.fa.set_flow_style()
    return node
