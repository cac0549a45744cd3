"""Options of other commands and tools, and words in place of a command: the hints that are said in their place."""

import shlex

import pytest

from redline.cli import other_options
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags
from redline.cli.declaring import Flags
from redline.cli.other_options import instead_of
from redline.extras.peers.like import read_like

NO_OPTION = "redline {}: no such option: {} (Possible options: --status, --user)"


def hint(line: str) -> str:
    """The hint for a command line whose first option its command lacks."""
    command, *words = shlex.split(line)
    option = next(word for word in words if word.startswith("-"))
    option = option[:2] if not option.startswith("--") else option.partition("=")[0]
    return instead_of(NO_OPTION.format(command, option), [command, *words])


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("load -z 5s URL", "-d TIME"),
        ("load -z5s URL", "-d TIME"),
        ("load -z 30 URL", "-d TIME"),
        ("load -z 'Fri, 27 Nov 2026 10:00:00 GMT' URL", "If-Modified-Since"),
        ("load --vus 10 URL", "-c N"),
        ("load --concurrency=10 URL", "-c N"),
        ("load --rps 10 URL", "-R RATE"),
        ("load --iterations 10 URL", "--count N"),
        ("load -n 10 URL", "--count N"),
        ("load --run-time 10s URL", "-d TIME"),
        ("load --latency URL", "always measured"),
        ("load -a me:secret URL", "--user NAME:PASSWORD"),
        ("load -a URL", "a body is sent as it is"),
        ("load -T application/json URL", "Content-Type"),
        ("load -T file.txt URL", "--body @FILE"),
        ("load --disable-keepalive URL", "--no-keepalive"),
        ("load --format html URL", "-o FILE.html"),
        ("limit URL -f md", "-o FILE.html"),
        ("run suite.yaml --format json", "-o FILE.html"),
        ("load -u 10 URL", "-c N"),
        ("load -u me:secret URL", "--user NAME:PASSWORD"),
        ("load -i 100 URL", "--count N"),
        ("load -r 100 URL", "-R RATE"),
        ("load -r 0-99 URL", "Range"),
        ("load -p 10 URL", "--depth N"),
        ("load -w 4 URL", "-t N"),
        ("ab A B -u 4", "--load closed:N"),
        ("ab A B -t 30s", "--for TIME"),
        ("ab A B -t 4", "--write-suite"),
        ("limit URL -u 4", "-c N, the most connections"),
        ("ab A B --vus 4", "--load closed:N"),
        ("ab A B --rps 4", "--load open:RATE"),
        ("ab A B --run-time 4s", "--for TIME"),
        ("ab A B --budget 4s", "--for TIME"),
        ("limit URL --budget 4s", "--for TIME"),
        ("run suite.yaml --for 4m", "-d TIME"),
        ("ab A B --iterations 4", "--write-suite"),
        ("limit URL --vus 4", "-c N, the most connections"),
        ("limit URL --rps 4", "--start N"),
        ("limit URL --run-time 1m", "--for TIME"),
        ("limit URL --iterations 4", "redline load"),
        ("run suite.yaml --vus 4", "-u N"),
        ("run suite.yaml --rps 4", "--scale FACTOR"),
        ("profile suite.yaml --iterations 4", "`count`"),
    ],
)
def test_an_option_of_a_load_generator_is_answered_with_ours(line: str, flag: str) -> None:
    assert flag in hint(line)


@pytest.mark.parametrize(("command", "flag"), [("load", "`-d TIME`"), ("limit", "`--for TIME`")])
def test_a_time_in_place_of_threads_is_a_duration(command: str, flag: str) -> None:
    message = f"redline {command}: invalid value for '-t' / '--threads': Input should be a valid integer"
    assert flag in instead_of(message, [command, "URL", "-t", "30s"])
    assert instead_of(message, [command, "URL", "-t", "many"]) == ""


@pytest.mark.parametrize("command", ["view", "history", "doctor"])
def test_commands_that_load_nothing_have_no_such_hints(command: str) -> None:
    assert hint(f"{command} --vus 4") == ""


def test_the_pasted_command_that_the_hint_names_is_understood() -> None:
    said = hint("load --vus 4 URL")
    pasted = said.split("`--like '")[1].split("'")[0]
    assert read_like(pasted.replace("URL", "http://127.0.0.1:9/")).flags["duration"] == "5s"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("http://127.0.0.1:8080/", "`redline load http://127.0.0.1:8080/` loads it"),
        ("https://shop.test/items?a=1&b=2", "`redline load 'https://shop.test/items?a=1&b=2'` loads it"),
        ("localhost:8080", "`redline load localhost:8080` loads it"),
        ("suites/mine.yaml", "`redline run suites/mine.yaml` runs a suite"),
        ("./server --port {port}", "`redline load './server --port {port}'` starts and loads it"),
        ("loda", ""),
    ],
)
def test_a_word_in_place_of_a_command_is_answered_with_the_command(word: str, said: str) -> None:
    assert instead_of(f"redline: no such command '{word}'").startswith(said)
    assert bool(instead_of(f"redline: no such command '{word}'")) == bool(said)


@pytest.mark.parametrize(("line", "said"), [("load URL -q 100", "-R 100"), ("load URL 100", "")])
def test_a_number_after_q_is_a_rate_elsewhere(line: str, said: str) -> None:
    answer = instead_of("redline load: got unexpected extra argument(s) (100)", line.split())
    assert said in answer
    assert bool(said) == bool(answer)


@pytest.mark.parametrize(("name", "flags"), [("load", LoadFlags), ("ab", AbFlags), ("limit", LimitFlags)])
def test_no_hint_is_about_an_option_that_the_command_has(name: str, flags: type[Flags]) -> None:
    own = {option for declared in flags.declared().values() for option in declared.param_decls or ()}
    answered = {*" ".join(other_options._BY_COMMAND[name]).split()}
    assert answered
    assert not own & answered
