"""The imports of `redline` before it works, and that every command is declared as it is implemented."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from redline.asking import places
from redline.cli.command_line import FLAGS, AbFlags, app
from redline.cli.declaring import execute_of
from tests.e2e.conftest import for_each

OURS = {"numpy", "scipy", "rich", "jinja2", "ruamel.yaml", "ruptures", "psutil", "redline.model"}
HEAVY = {"pydantic", *OURS}
IMPORTED = """
import sys
from redline.cli.main import main
sys.argv[0] = "redline"
try:
    main()
except SystemExit:
    pass
sys.stderr.write("imported: " + " ".join(name for name, module in sys.modules.items() if module))
"""


def redline(args: list[str], **env: str) -> tuple[str, set[str]]:
    """Its output, and every module that it imports for that."""
    command = [sys.executable, "-c", IMPORTED, *args]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "COLUMNS": "80", **env}
    )
    return done.stdout, set(done.stderr.rpartition("imported: ")[2].split())


def completed(line: str) -> tuple[str, set[str]]:
    return redline([], _REDLINE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" ")))


@pytest.mark.parametrize(
    ("args", "shows"),
    [
        (["--version"], "redline 0"),
        (["--help"], "selftest  Test the engine against servers with known answers."),
    ],
)
def test_help_imports_nothing_heavy(args: list[str], shows: str) -> None:
    out, imported = redline(args)
    assert shows in out
    assert not HEAVY & imported


@pytest.mark.parametrize(
    ("args", "shows"),
    [
        (["load", "--help"], "--requests-per-connection N"),
        (["limit", "--help"], "--precision SHARE"),
        (["compare", "--help"], "--fail-on slower|inconclusive"),
    ],
)
def test_the_help_of_a_command_does_not_import_it(args: list[str], shows: str) -> None:
    out, imported = redline(args)
    assert shows in out
    assert not OURS & imported  # typer itself imports pydantic, to read a flag
    assert not [name for name in imported if name.startswith("redline.cli.commands.")]


@pytest.mark.parametrize(("line", "shows"), [("redline his", "history"), ("redline load --requests", "--requests-per")])
def test_shell_completion_imports_nothing_heavy(line: str, shows: str) -> None:
    out, imported = completed(line)
    assert shows in out
    assert not HEAVY & imported


def test_a_command_does_not_import_the_others() -> None:
    _, imported = redline(["check", "none.yaml"])
    commands = {name for name in imported if name.startswith("redline.cli.commands.")}
    assert commands == {"redline.cli.commands.check"}
    assert not {"scipy", "ruptures"} & imported


def test_every_command_takes_the_flags_that_are_declared() -> None:
    assert len(FLAGS) == 20
    for name, flags in FLAGS.items():
        execute = execute_of(name)
        assert get_type_hints(execute) == {"flags": flags, "return": type(None)}


FORKS = """
import os, sys
from redline.cli.command_line import app
from redline.cli.main import main
folder, *lines = sys.argv[1:]
for number, line in enumerate(lines):
    if os.fork() == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        sys.argv = ["redline", *line.split()]
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
Done = tuple[int, str, str]
"""The exit code, stdout and stderr."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Command lines that need no more than the declared flags, each in a fork of one process: an import costs most."""
    folder, lines = tmp_path_factory.mktemp("lines"), [line for line, _ in (*HELPS, *UNREADABLE)]
    command = [sys.executable, "-c", FORKS, str(folder), *lines]
    codes = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    texts = [[(folder / f"{number}.{name}").read_text() for name in ("out", "err")] for number in range(len(lines))]
    return {line: (int(code), out, err) for line, code, (out, err) in zip(lines, codes, texts, strict=True)}


HELPS = [("help", "Usage: redline "), ("help load", "Usage: redline load ")]


@pytest.mark.parametrize(("line", "says"), HELPS)
def test_help_is_a_command_too(line: str, says: str, done: dict[str, Done]) -> None:
    code, out, err = done[line]
    assert (code, err) == (0, "")
    assert says in out


UNREADABLE = [
    ("loda", "no such command 'loda'. Did you mean 'load'?\n  hint: see `redline --help`"),
    ("load u --userz 3", "no such option: --userz (Possible options: --user, --user-agent, --users)"),
    ("ab a b --limit p99<5ms", "no such option: --limit\n  hint: use `redline limit A B`"),
    ("ab a b -c 4", "no such option: -c\n  hint: use --load closed:N"),
    ("ab a b --stage 1:1s", "no such option: --stage\n  hint: write the suite that this is with --write-suite"),
    ("limit u --think 1s", "no such option: --think\n  hint: a search sends requests at a rate"),
    ("load u --for 1m", "no such option: --for\n  hint: use -d TIME"),
    ("limit u --speed 2x", "no such option: --speed\n  hint: a search looks for the speed of a recording"),
    ("load u -c x", "invalid value for '-c' / '--connections' / '--users': Input should be a valid integer\n"),
    ("load u -c 2 --users 3", "-c/--connections/--users is given twice\n  hint: it takes one value"),
    ("run a.yaml --trials 2 --trials=2", "--trials is given twice\n"),
    ("load u --output=", "-o has no value\n  hint: write -o DIR|FILE, or leave it out"),
    ("ab a b --write-suite=", "--write-suite has no value\n  hint: write --write-suite FILE, or leave it out"),
    ("limit u -o -", "-o - would write to stdout, which it cannot\n  hint: give a name; `./-` is a file called -"),
    ("report x --format markdown", "there is no format markdown\n  hint: use one of html, csv, parquet, json, "),
]


@pytest.mark.parametrize(("line", "says"), UNREADABLE)
def test_a_command_line_that_cannot_be_read_is_one_message(line: str, says: str, done: dict[str, Done]) -> None:
    code, out, err = done[line]
    assert (code, out) == (2, "")
    assert err.startswith("redline: ")
    assert says in err
    assert err.count("\n") == 2
    assert "Value error" not in err


def test_without_a_command_it_shows_them() -> None:
    out, _ = redline([])
    assert "selftest  Test the engine" in out


@pytest.mark.parametrize("args", [["--version"], ["list", "--json"], ["check", "suites/quickstart.yaml"]])
def test_output_that_cannot_be_written_is_one_message(args: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        command = [sys.executable, "-c", "from redline.cli.main import main; main()", *args]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith(
        "redline: the output could not be written: No space left on device\n  hint: see where stdout goes\n"
    )


@pytest.mark.parametrize("args", [["--version"], ["list"]])
def test_an_output_that_is_closed_is_one_message(args: list[str]) -> None:
    command = [sys.executable, "-c", "from redline.cli.main import main; main()", *args]
    closing = ["bash", "-c", 'exec "$@" >&-', "bash", *command]
    done = subprocess.run(closing, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "redline: the output could not be written: Bad file descriptor\n  hint: see where stdout goes\n"
    )


@pytest.mark.parametrize(
    ("where", "args", "code"),
    for_each(
        ["2>&-", "2>/dev/full", "<&- 2>&-"],
        [("load http://127.0.0.1:1/ -d 1s", 1), ("--version", 0), ("load http://127.0.0.1:0/", 2), ("nonsense", 2)],
    ),
)
def test_a_stderr_that_cannot_be_written_changes_nothing(where: str, args: str, code: int) -> None:
    command = f"{sys.executable} -m redline {args} {where}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code
    assert done.stdout.startswith("redline 0") == (args == "--version")
    assert done.stderr == ""


def test_where_nothing_can_be_written_the_exit_code_says_so() -> None:
    command = f"{sys.executable} -m redline --version >/dev/full 2>/dev/full"
    assert subprocess.run(["bash", "-c", command], timeout=120, check=False).returncode == 1


IN_TURN = """
import sys
from redline.cli.main import main
for line in sys.argv[1:]:
    sys.argv = ["redline", *line.split()]
    try:
        main()
    except SystemExit as end:
        print("ended:", line, end.code, file=sys.stderr)
"""


def test_a_folder_that_is_gone_is_one_message_of_each_command(tmp_path: Path) -> None:
    words = dict.fromkeys(("compare", "judge", "report", "check", "import"), " a")
    words |= {"history": " .", "load": " http://127.0.0.1:1/"}
    lines = [f"{command}{words.get(command, '')}" for command in FLAGS]
    (tmp_path / "gone").mkdir()
    script = f'cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec "$@"'
    command = ["bash", "-c", script, "bash", sys.executable, "-P", "-c", IN_TURN, *lines]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    said = done.stderr
    for line in lines:
        message, ended, said = said.partition(f"ended: {line} 2\n")
        assert ended, (line, message)
        assert message.startswith("redline: the current folder cannot be used: No such file or directory\n  hint: ")
        assert message.count("\n") == 2
    assert said == ""


@pytest.mark.parametrize("command", ["load http://127.0.0.1:1/", "list"])
def test_a_process_whose_folder_is_gone_ends_with_one_message(command: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && {sys.executable} -P -m redline {command}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("redline: the current folder cannot be used: No such file or directory\n  hint: ")
    assert done.stderr.count("\n") == 2


def test_a_reader_who_leaves_is_no_error() -> None:
    command = f"{sys.executable} -c 'from redline.cli.main import main; main()' list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == ""


def test_its_name_is_that_on_the_path_or_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "redline").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    names = []
    for called in (tmp_path / "bin" / "redline", tmp_path / "other" / "redline", "-c"):
        monkeypatch.setattr(sys, "argv", [str(called)])
        names.append(places.own_name())
    assert names == ["redline", "other/redline", "redline"]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--wait", "A", "B"], (["A", "B"], "1h")),
        (["A", "--wait=10m", "B"], (["A", "B"], "10m")),
        (["A", "B"], (["A", "B"], None)),
        (["A", "--", "--wait"], (["A", "--wait"], None)),
    ],
)
def test_a_value_that_may_be_left_out_is_never_the_next_argument(
    given: list[str], read: tuple[list[str], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[AbFlags] = []
    monkeypatch.setattr(import_module("redline.cli.commands.ab"), "execute", seen.append)
    app(["ab", *given], standalone_mode=False)
    assert ([seen[0].a, seen[0].b], seen[0].wait) == read
