"""`redline.yaml`: what it means, and the errors for a wrong file."""

import json
import re
from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.model import Ready
from redline.model.template import first_of
from redline.schema.project import ProjectSchema
from redline.suite.project import Project, read_project
from redline.suite.validate.referenced_files import Files
from tests.fakes.schemas import schemas

START = "start: ./server --port {port}\n"


def project(text: str) -> Project:
    return read_project(text, "redline.yaml", Files(lambda name: {"ids.txt": "7\n8\n"}[name]))


def test_a_command_is_enough() -> None:
    made = project(START)
    assert made.build is None
    assert made.server("server").start.command == ("./server", "--port", "{port}")
    assert (made.server("server").runtime, made.server("server").ready) == ("", Ready())
    assert [(each.method, each.path) for each in made.scenarios[0].requests] == [("GET", "/")]


@pytest.mark.parametrize(
    ("more", "path", "status"),
    [
        ("check: {get: /items, expect: {status: 201}}\n", "/items", 201),
        ("check: {get: '/items/{pick:ids.txt}?n={rand:3..5}'}\n", "/items/7?n=3", 200),
        ("check: {post: /items, body: x}\n", "/", 200),
        ("check: {get: /items}\nready: {path: /health}\n", "/health", 200),
        ("ready: {status: 204, within: 1m}\n", "/", 204),
    ],
)
def test_it_is_ready_when_it_answers(more: str, path: str, status: int) -> None:
    ready = project(START + more).server("server").ready
    assert (ready.path, ready.status) == (path, status)
    assert ready.within_ns == (60 if "within" in more else 10) * 1_000_000_000


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        ("start: /opt/jdk/bin/java -jar app.jar {port}\n", "jvm"),
        (START, ""),
        (START + "runtime: native\n", "native"),
        (START + "runtime: jvm\n", "jvm"),
    ],
)
def test_what_runs_it_is_seen_or_reported(text: str, runtime: str) -> None:
    entry = project(text).server("server")
    assert entry.runtime == runtime
    assert entry.ready.within_ns == (60 if runtime == "jvm" else 10) * 1_000_000_000


def test_how_long_a_jvm_may_take_can_be_set() -> None:
    assert project(START + "runtime: jvm\nready: {within: 5s}\n").server("server").ready.within_ns == 5_000_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("build: make\n", ["redline.yaml:1:1: start: `start` is missing"]),
        ("start: ./server\n", ["redline.yaml:1:8: start: './server' has no {port}", "`env PORT={port} ./server`"]),
        ("start: ./server '{port}\n", ["redline.yaml:1:8: start: ", "is not a command", "quote it as a shell would"]),
        (START + "chek: {get: /}\nbuild: ''\n", ["redline.yaml:2:1: chek: unknown key", "redline.yaml:3:8: build: "]),
        ("start: ./server {prt} {port}\n", ["{prt} is not a placeholder"]),
        (START + "check: {}\n", ["redline.yaml:2:8: check: this request has no method"]),
        (START + "check: {get: /x, weight: 2}\n", ["unknown key `weight`"]),
        ("start: ./a --port $PORT\n", ["`$PORT` is for a shell", "write `{port}`"]),
        ("start: ./a '--port=${PORT:-80}'\n", ["has no {port}"]),
        ("start: ./a -p=${PORT:-80}\n", ["write `-p={port}`"]),
        (START + "check: {get: 'HTTP://127.0.0.1:1/x?y'}\n", ["is not a path", "write `/x?y`"]),
        (START + "check: {get: 'http://127.0.0.1'}\n", ["write `/`"]),
        (START + "check: {get: x}\n", ["write `/x`"]),
        (START + "check: {get: /x, status: 201}\n", ["write `expect: {status: 201}`"]),
        (START + "check: {post: /x, body: {name: pen}}\n", ["write JSON by its own key"]),
        ("base: &b {start: ./a}\n<<: *b\n", ["YAML 1.2 has no merge keys"]),
        (
            "servers:\n  - {name: a, start: ./a --port {port}}\n",
            ["redline.yaml:2:33: ", "quote a text with braces"],
        ),
        ("servers:\n  - {name: my/server, start: './a {port}'}\n", ["of letters, digits"]),
        (START + "budget: 60\n", ["`60` has no unit", "write `60s`, if that"]),
    ],
)
def test_all_that_is_wrong_is_reported_with_its_place(text: str, says: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        project(text)
    for each in says:
        assert each in str(refused.value)


def test_the_guide_names_every_key() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "my-server.md").read_text()
    for key in ProjectSchema.model_fields:
        assert f"| `{key}` |" in guide
    assert "redline.yaml" in json.dumps(schemas()["project.schema.json"])


def test_the_bodies_of_the_guides_are_json() -> None:
    text = (Path(__file__).parents[3] / "docs" / "guide" / "ab.md").read_text()
    bodies = re.findall(r"^  body: '(.*)'$", text, flags=re.MULTILINE)
    assert bodies
    for body in bodies:
        json.loads(first_of(body, {}))


AROUND = START + "env: {A: '${B}-{port}', C: '{\"json\": 1}'}\nenv_file: conf/.env\nbefore: a\nprepare: b\nafter: c\n"


def test_what_is_set_up_around_a_start_goes_to_revisions_with_the_file_of_the_work_tree() -> None:
    start = read_project(AROUND, "/work/shop/redline.yaml").server("server").start
    assert start.env == {"A": "${B}-{port}", "C": '{"json": 1}'}
    assert start.env_file == "/work/shop/conf/.env"
    assert (start.before, start.prepare, start.after) == ("a", "b", "c")
    assert project(AROUND).server("server").start.env_file == "conf/.env"
    assert "env_file" not in project(START).server("server").start.model_dump_json()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("env: {A: '{foo}'}\n", "redline.yaml:2:6: env: {foo} in `A` is not a placeholder; known are {port}"),
        ("env: {A: '{A}${A}'}\n", "redline.yaml:2:6: env: {A} in `A` is not a placeholder"),
        ("env_file: ''\n", "redline.yaml:2:11: env_file: '' does not name a file"),
        ("before: ''\n", "redline.yaml:2:9: before: "),
    ],
)
def test_what_is_wrong_around_a_start_is_reported_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        project(START + text)
    assert says.replace("; ", "\n  hint: ") in str(refused.value)
