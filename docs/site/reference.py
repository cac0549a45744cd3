"""What is made from code and schemas for the site: flags below their commands, keys of files, functions of Python."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redline.cli import manual

REFERENCE = Path(__file__).parents[1] / "reference"
SCHEMAS = {
    "docs/reference/suite": "suite",
    "docs/guide/my-server": "project",
}
"""Pages, and the schema of the file that they describe."""
API = ("run", "ab", "limit", "load", "serve", "Suite", "MeasurementInterrupted")
RESULTS = ("RunResult", "SearchResult", "Amount")


def added(page: str, text: str) -> str:
    """Return a page's text with its generated parts; `page` is its path without the ending."""
    if page == "docs/reference/commands":
        return with_flags(text)
    if page in SCHEMAS:
        schema = json.loads((REFERENCE / f"{SCHEMAS[page]}.schema.json").read_text())
        return "\n".join([text, f"## All keys of {SCHEMAS[page]}.yaml", "", *keys(schema)])
    if page == "docs/guide/python":
        return "\n".join([text, *api()])
    return text


def with_flags(text: str) -> str:
    """Add the list of its flags to the section of each command. Raises ValueError where a command has no section."""
    commands = {f"redline {name}": flags for name, flags in manual.flags().items()}
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    written = []
    for part in parts:
        title = part.partition("\n")[0].removeprefix("## ").strip("`")
        if flags := commands.pop(title, []):
            part = "\n".join([part.rstrip(), "", f"### Flags of {title}", "", *listed(flags)])  # noqa: PLW2901
        written.append(part)
    if commands:
        raise ValueError(f"commands without a section: {', '.join(commands)}")
    return "".join(written)


def listed(flags: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a definition list."""
    for called, about in flags:
        yield f"`{called}`\n: {escaped(about) or 'see above'}\n"
    yield ""


def keys(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a table of keys for the whole file, and for each kind of mapping in it."""
    definitions = schema.get("$defs", {})
    for name, definition in {"": schema, **definitions}.items():
        if "properties" not in definition:
            continue
        if name:
            yield f"\n### {name_of(name)}\n"
        yield "| key | value | default |"
        yield "|---|---|---|"
        for key, value in definition["properties"].items():
            needed = "required" if key in definition.get("required", ()) else shown(value.get("default"))
            about = escaped(value.get("description", ""))
            yield f"| `{key}` | {kind(value)}{': ' if about else ''}{about} | {needed} |"
        yield ""


def kind(value: dict[str, Any]) -> str:
    """Return what a value may be, in a few words."""
    if "$ref" in value:
        return f"`{name_of(value['$ref'])}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"] if choice is not None)
    choices = [*value.get("anyOf", ()), *value.get("oneOf", ())]
    if choices := [choice for choice in choices if choice.get("type") != "null"]:
        return " or ".join(dict.fromkeys(map(kind, choices)))
    names = value.get("type", "any value")
    text = " or ".join(names) if isinstance(names, list) else str(names)
    if text == "array" and isinstance(value.get("items"), dict):
        return f"list of {kind(value['items'])}"
    values = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
    inner = next((it for it in values if isinstance(it, dict)), None)
    return f"mapping to {kind(inner)}" if text == "object" and inner else {"object": "mapping"}.get(text, text)


def name_of(definition: str) -> str:
    """Return the name of a mapping, from `#/$defs/ClosedSchema` or `ClosedSchema`."""
    return definition.rpartition("/")[2].removesuffix("Schema")


def shown(default: Any) -> str:
    """Return a default as YAML's flow style writes it; empty where there is none to write."""
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`"


def escaped(text: str) -> str:
    """Return plain text in one line of Markdown: what is no code has no markup."""
    parts = " ".join(text.split()).split("`")
    return "`".join(
        part if number % 2 else re.sub(r"([*_\[\]<>{}|\\$~])", r"\\\1", part) for number, part in enumerate(parts)
    )


def api() -> Iterator[str]:
    """Yield the reference of Python: what `from redline import …` gives, and what the functions return."""
    yield "\n## Reference\n"
    yield "```{eval-rst}"
    for name in API:
        kind_of = "autofunction" if name.islower() else "autoclass"
        yield f".. {kind_of}:: redline.{name}" + ("" if name.islower() else "\n   :members:") + "\n"
    for name in RESULTS:
        yield f".. autoclass:: redline.api.{name}\n   :members:\n"
    yield "```"
