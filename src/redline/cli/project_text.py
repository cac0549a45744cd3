"""Write a new `redline.yaml`: the server and its request, and further keys in comments. Pure."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import PurePath

from redline.asking.written import as_yaml
from redline.schema.shell import SHELLS

_TEXT = """\
{schema}# What Redline measures in this folder. `redline run` loads it; every key: docs/guide/my-server.md
{servers}\
#  - {{name: other, start: './other --port {{port}}'}}   # a second server: `redline run` compares the two

# What is requested, and the right answer.
{asked}
# `redline limit` finds the highest rate that meets this:
# objective: p99 < 200ms, errors < 0.1%
"""
_PROGRAM_FILES = {".go", ".jar", ".java", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".ts"}
_SETTING = re.compile(r"-|\w+=")
"""An option of `env`, or a variable that it sets."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")


def project_text(server: Mapping[str, object], asked: Mapping[str, object], schema: str = "") -> str:
    """Return a file for a server and its requests: the key `check` for one request, or `requests` for several.

    `schema` is the URL of the schema by which editors check and complete it.
    """
    named = schema and f"# yaml-language-server: $schema={schema}\n"
    return _TEXT.format(schema=named, servers=as_yaml({"servers": [server]}), asked=as_yaml(asked))


def name_of(command: Sequence[str]) -> str:
    """Name a server after its program, or after the file that an interpreter runs, as also `env` and `sh -c` may."""
    program, *words = command
    if PurePath(program).name == "env":
        settings = len([*takewhile(_SETTING.match, words)])
        program, *words = words[settings:] or [program]
    if PurePath(program).name in SHELLS and words[:1] == ["-c"]:
        words = re.split("&&|;", " ".join(words[1:]))[-1].split()
        program = next((word for word in words if word != "exec" and not _SETTING.match(word)), program)
    file = next((word for word in words if PurePath(word).suffix in _PROGRAM_FILES), program)
    return _UNSAFE.sub("-", PurePath(file).stem).strip("-._~") or "server"
