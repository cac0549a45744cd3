"""Parts of what is asked for: as flags, as parameters, and nowhere written by hand."""

import ast
import pickle
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from redline.asking.asks import ComparisonAsk, LoadAsk, SearchAsk, SuiteAsk
from redline.cli.asks import FIELDS
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags, RunFlags
from redline.cli.declaring import Flags
from redline.errors import NamedPart, UsageError
from redline.wording import FLAGS, Call, advice, advising, asked_by, medium_of, part

SOURCE = Path(__file__).parents[3] / "src" / "redline"
COMMANDS: tuple[type[Flags], ...] = (LoadFlags, AbFlags, LimitFlags, RunFlags)
PARTS = {value: name for name, value in FIELDS.items()} | {"output": "keep"}
ROOMS = (
    *("suite", "linux", "driving", "watching", "launching", "storage", "running", "asking", "files.py"),
    *("extras/hosts", "extras/profiling", "extras/exports"),
)
"""Whatever may raise an error, whoever asks."""
OF_COMMANDS_ALONE = {"resume", "json", "stream", "spectrum", "quiet", "verbose", "like", "follow", "form", "fail_on"}
"""What no other medium has: commands name these flags themselves."""
OF_RESULTS = {"write_suite", "openmetrics", "otlp", "remote_write"}


def flags() -> Iterator[tuple[str, list[str]]]:
    """The part of each flag of a command that measures, and its names."""
    for kind in COMMANDS:
        for field, declared in kind.declared().items():
            if declared.param_decls and field not in OF_COMMANDS_ALONE | OF_RESULTS:
                yield PARTS.get(field, field), [*declared.param_decls]


@pytest.mark.parametrize(("name", "declared"), [*flags()])
def test_a_part_is_written_as_its_flag_is_declared(name: str, declared: list[str]) -> None:
    assert part(name) in declared


def test_a_flag_that_is_not_called_as_its_part_is_declared() -> None:
    assert FLAGS.keys() <= dict(flags()).keys()


@pytest.mark.parametrize(
    ("name", "value", "flag", "parameter"),
    [
        ("budget", "10x", "--for 10x", "budget='10x'"),
        ("trials", 2, "--trials 2", "trials=2"),
        ("rate", 2.5, "-R 2.5", "rate=2.5"),
        ("objective", "p99 < 5ms", "--objective 'p99 < 5ms'", "objective='p99 < 5ms'"),
        ("cacert", Path("ca.pem"), "--cacert ca.pem", "cacert='ca.pem'"),
        ("headers", "Accept: text/plain", "-H 'Accept: text/plain'", "headers={'Accept': 'text/plain'}"),
        ("body", Path("item.json"), "--body @item.json", "body=Path('item.json')"),
        ("stages", ("5:1s", "9:1s"), "--stage 5:1s --stage 9:1s", "stages=['5:1s', '9:1s']"),
        ("stages", ("5:1s",), "--stage 5:1s", "stages='5:1s'"),
        ("load", "closed:8", "--load closed:8", "users=8"),
        ("load", "open:5/s", "--load open:5/s", "rate='5/s'"),
        ("same_answers", None, "--same-answers", "same_answers"),
    ],
)
def test_a_part_in_each_medium(name: str, value: object, flag: str, parameter: str) -> None:
    def said() -> str:
        return part(name) if value is None else part(name, value)

    assert said() == flag
    with asked_by(Call()):
        assert said() == parameter
    assert said() == flag


@pytest.mark.parametrize(
    ("asks_by", "said"),
    [
        ("inputs", ["`for: 10x`", "`for`", "--load closed:8"]),
        ("variables", ["REDLINE_FOR=10x", "REDLINE_FOR", "--load closed:8"]),
        ("", ["--for 10x", "--for", "--load closed:8"]),
    ],
)
def test_a_step_of_ci_names_its_inputs(asks_by: str, said: list[str]) -> None:
    with asked_by(medium_of({"REDLINE_ASKS_BY": asks_by})):
        assert [part("budget", "10x"), part("budget"), part("load", "closed:8")] == said


def test_a_parameter_may_have_another_name() -> None:
    with asked_by(Call({"connections": "users"})):
        assert part("connections", 0) == "users=0"


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module with their lines, without docstrings, and without commands between backticks."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain:
            yield node.lineno, re.sub(r"`[\w./][\w./-]* [^`]*`?|redline \w+ .*", "", node.value)


def sources(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        assert (SOURCE / room).exists(), room
        yield from [SOURCE / room] if room.endswith(".py") else (SOURCE / room).rglob("*.py")


FLAG = re.compile(
    "|".join(
        rf"(?<![\w-]){re.escape(flag)}(?![\w-])"
        for flag in sorted({flag for _, names in flags() for flag in names if flag.startswith("--")})
    )
)
OF_OTHERS = {"--timeout", "--with", "--threads", "--user", "--rate"}
"""Flags that other programs have too, which the lab starts or advises."""


def test_messages_name_no_flag_by_themselves() -> None:
    named = [
        f"{file.relative_to(SOURCE)}:{line}: {found[0]}"
        for file in sources(*ROOMS)
        if file.parent.name not in {"importing", "schema"}  # of other tools, and of suites
        for line, text in texts(file)
        if (found := FLAG.search(text)) and found[0] not in OF_OTHERS
    ]
    assert named == []


def test_every_part_in_a_message_is_one() -> None:
    kinds = (LoadAsk, ComparisonAsk, SearchAsk, SuiteAsk)
    known = {field.name for kind in kinds for field in fields(kind)} | dict(flags()).keys() | {"most", "recent"}
    named = {
        node.args[0].value: f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in sources(*ROOMS, "cli")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "part"
        if isinstance(node.args[0], ast.Constant)
    }
    assert {name: place for name, place in named.items() if name not in known} == {}


def test_advice_is_the_usual_unless_a_place_has_other_means() -> None:
    with advising({"longer": "start it yourself"}):
        assert advice("longer", "raise `within`") == "start it yourself"
        with advising({"mend": "build it"}):
            assert (advice("longer", ""), advice("mend", "")) == ("start it yourself", "build it")
        assert advice("mend", "fix it") == "fix it"
    assert advice("longer", "raise `within`") == "raise `within`"


def test_a_message_keeps_the_parts_that_it_names() -> None:
    message = part("rate", 5) + " and " + part("users") + f" are {2} loads"
    error = pickle.loads(pickle.dumps(UsageError("here: " + message, hint="leave out one")))
    assert error.message == "here: -R 5 and -u are 2 loads"
    assert error.problems[0].parts == (NamedPart("rate", 5), NamedPart("users"))
    assert (error.problems[0].part, error.problems[0].value) == ("rate", 5)
    assert UsageError("nothing of it", hint="").problems[0].part is None
