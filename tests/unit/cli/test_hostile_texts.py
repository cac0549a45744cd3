"""Every command prints foreign texts: names of files and flags, suites, catalogues, stored runs. None has an effect."""

import io
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redline.cli.command_line import FLAGS
from redline.cli.main import main
from tests import golden
from tests.fakes.catalogues import FAMILY, SCENARIOS, SUITE, write_catalogue
from tests.fakes.histories import stored_run
from tests.unit.test_visible import HOSTILE, obeyed

NAME = re.sub("[=/\udc80\U000e0041]", "", HOSTILE)
"""Valid as the name of a file and of a flag, and in YAML."""
IN_YAML = json.dumps(NAME)
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]\r?|\x1b\[[12]?[KA]|\r(?=\x1b\[[12][KA])")
_FORGED = ("\x1b[8m", "\x1b]")


class Printed:
    """The output of a command on both streams, on a terminal with colours."""

    def __init__(self) -> None:
        self.out, self.err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))

    @property
    def text(self) -> str:
        """Both streams, after the command."""
        for stream in (self.out, self.err):
            stream.flush()
        return "".join(stream.buffer.getvalue().decode() for stream in (self.out, self.err))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a catalogue, where a command is run; signal handlers are restored after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    write_catalogue(tmp_path / "catalogue")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


def printed(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> str:
    """The command's output, after checking that it controls the terminal only with our colours and cursor moves."""
    made = Printed()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["redline", *map(str, args)])
        patch.setattr(sys, "stdout", made.out)
        patch.setattr(sys, "stderr", made.err)
        with pytest.raises(SystemExit):
            main()
    text = made.text
    assert "Traceback" not in text
    assert not obeyed(_OURS.sub("", text)), ascii(text)
    assert not [each for each in _FORGED if each in text], ascii(text)
    return text


@pytest.mark.parametrize("command", FLAGS)
def test_a_flag_that_there_is_not(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "owned" in printed(monkeypatch, command, f"--{NAME}")


@pytest.mark.parametrize(
    "args",
    [
        ("ab", "--resume", NAME),
        ("ab", f"http://{NAME}", "http://127.0.0.1:1/"),
        ("bisect", "--resume", NAME),
        ("build", NAME),
        ("check", NAME),
        ("compare", NAME),
        ("compare", NAME, NAME),
        ("history", NAME),
        ("import", NAME),
        ("init", NAME),
        ("judge", NAME),
        ("limit", f"{NAME}.yaml"),
        ("limit", "--resume", NAME),
        ("list", NAME),
        ("load", f"http://127.0.0.1:1/{NAME}"),
        ("load", "http://127.0.0.1:1/", "--body", f"@{NAME}"),
        ("load", "https://127.0.0.1:1/", "--cacert", NAME),
        ("load", "http://127.0.0.1:1/", "-H", f"{NAME}: x"),
        ("profile", NAME),
        ("report", NAME),
        ("run", NAME),
        ("run", "--resume", NAME),
        ("selftest", "--case", NAME),
        ("view", NAME),
    ],
    ids=lambda args: " ".join(each for each in args if NAME not in each),
)
def test_a_name_on_the_command_line(args: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "owned" in printed(monkeypatch, *args)


def test_every_command_gets_a_hostile_name() -> None:
    (mark,) = test_a_name_on_the_command_line.pytestmark  # type: ignore[attr-defined]
    assert {args[0] for args in mark.args[1]} == set(FLAGS) - {"cache", "doctor", "mcp"}  # they name no file


@pytest.mark.parametrize("command", ["check", "run", "limit"])
@pytest.mark.parametrize(
    "suite",
    [
        f"{IN_YAML}: 1\n{SUITE}",
        SUITE.replace("fam.plain", IN_YAML),
        SUITE.replace("[Get]", f"[{IN_YAML}]"),
        SUITE.replace("[Get]", f"[{{name: M, get: /, expect: {{{IN_YAML}: 1}}}}]"),
        SUITE.replace("closed: {users: 64}", f"open: {{arrivals: {{replay: {IN_YAML}}}}}"),
        SUITE.replace("saturate", IN_YAML),
        SUITE.replace("1s", IN_YAML),
        f"{SUITE}about: {IN_YAML}\nbaseline: {IN_YAML}\n",
    ],
)
def test_a_suite(command: str, suite: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "some.yaml").write_text(suite)
    assert "owned" in printed(monkeypatch, command, "some.yaml")


@pytest.mark.parametrize("command", [("list",), ("list", "--json"), ("build", "fam.plain"), ("build", "--json")])
def test_an_entry_of_the_catalogue(command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = FAMILY.replace("no framework", IN_YAML).replace("command: make", f"command: {IN_YAML}")
    scenarios = SCENARIOS.replace("Get: {", f"Get: {{about: {IN_YAML}, ", 1)
    write_catalogue(folder / "catalogue", fam=family.replace("install make", IN_YAML), scenarios=scenarios)
    (folder / "suites").mkdir()
    (folder / "suites" / "some.yaml").write_text(f"about: {IN_YAML}\n{SUITE}")
    text = printed(monkeypatch, *command)
    assert "owned" in text
    if command == ("list", "--json"):
        assert json.loads(text)["scenarios"]["Get"] == NAME


@pytest.mark.parametrize("command", [("list",), ("build", "fam.plain"), ("check", "some.yaml")])
def test_a_wrong_entry_of_the_catalogue(
    command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_catalogue(folder / "catalogue", fam=f"{IN_YAML}: 1\n{FAMILY}".replace("default: off", f"default: {IN_YAML}"))
    (folder / "some.yaml").write_text(SUITE)
    assert "owned" in printed(monkeypatch, *command)


def edited(content: Any, *keys: str) -> Any:
    """JSON in which the texts of these keys are hostile, as a user can write it."""
    if isinstance(content, list):
        return [edited(each, *keys) for each in content]
    if isinstance(content, dict):
        return {k: v + NAME if k in keys and isinstance(v, str) else edited(v, *keys) for k, v in content.items()}
    return content


def edit(folder: Path, *keys: str) -> None:
    """Do so in every file of a stored run."""
    for file in folder.rglob("*.json"):
        file.write_text(json.dumps(edited(json.loads(file.read_text()), *keys)))


TEXTS = ("hostname", "cpu_model", "kernel", "about", "message", "hint", "log_tail", "family_folder")


@pytest.mark.parametrize(
    "command",
    [
        ("report", "a"),
        *(("report", "a", "-f", form) for form in ("md", "csv", "json", "html")),
        ("compare", "a", "b", "--anyway"),
        ("compare", "a", "b", "--anyway", "--json"),
        ("judge", "a"),
        ("judge", "a", "--json"),
        ("history", "."),
        ("history", ".", "-f", "md"),
        ("history", ".", "--json"),
        ("run", "--resume", "a"),
    ],
    ids=" ".join,
)
def test_a_run_edited_by_hand(command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in enumerate(("a", "b")):
        stored_run(folder, place)
        (folder / f"run-{place:02}").rename(folder / name)
        edit(folder / name, *TEXTS)
        manifest = json.loads((folder / name / "run.json").read_text())
        (folder / name / "run.json").write_text(json.dumps(manifest | {"name": NAME, "command": NAME}))
    (folder / NAME).mkdir()
    (folder / NAME / "run.json").write_text("{")
    assert "owned" in printed(monkeypatch, *command)


@pytest.mark.parametrize("more", [(), ("--json",), ("-f", "md")])
def test_a_folder_whose_name_is_no_text(more: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.fsdecode(b"odd\xff")
    stored_run(folder / name, 0)
    (folder / name / name).mkdir()
    (folder / name / name / "run.json").write_text("{")
    assert r"odd\udcff" in printed(monkeypatch, "history", name, *more).replace(r"\\", "\\")


@pytest.mark.parametrize("form", [(), ("-f", "md"), ("-f", "csv"), ("-f", "json"), ("-f", "html")])
def test_a_search_edited_by_hand(form: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(golden.FOLDER / "search-1", folder / "searched")
    edit(folder / "searched", "hostname", "message", "cpu_model")
    printed(monkeypatch, "report", "searched", *form)
