"""Options that another command or another tool has: what is said to somebody who gives them."""

import re
from collections.abc import Sequence
from itertools import pairwise
from shlex import quote

from redline.cli.curl_words import instead_of_curl

_IN_A_SUITE = "write the suite that this is with --write-suite FILE, and it into the load there"
_OF_OPEN_LOADS = "a search sends requests at a rate, and knows no such loads: see `redline load`"
_AS_A_FILE = "write the results with -o FILE.html, also as .md, .csv and .json; or keep all of them with -o DIR"
_FOLLOW = "ask for what the URL leads to: `redline load URL --follow` says what that is"
_BY_COMMAND = {
    "ab": {
        "--limit": "use `redline limit A B`",
        "-c --connections --users": "use --load closed:N, or --load open:RATE",
        "-R --rate": "use --load open:RATE",
        "-d --duration": "use --for TIME, which is how long all of it takes",
        "--warmup --count --depth --pace --think --stage --arrivals --requests-per-connection --connections-at-start "
        "-t --threads --trials": _IN_A_SUITE,
        "--objective": "a comparison has verdicts: see --fail-on; objectives are met by `redline load` and `limit`, or "
        "in a suite",
        "--follow": _FOLLOW,
        "-s --server": "name the two in place: `redline ab A B`",
        "--on": "a comparison on the hosts of a cluster is a suite: `redline run SUITE --on ADDRESS`",
    },
    "limit": {
        "--format -f --output-format --out": _AS_A_FILE,
        "--speed": "a search looks for the speed of a recording; --start 2x is the first that it tries",
        "-R --rate": "a search looks for the rate; --start N is the first that it tries",
        "--users": "use -c N, the most connections; a search sends requests at a rate",
        "--depth --pace --think --stage --count --requests-per-connection --connections-at-start": _OF_OPEN_LOADS,
        "--follow": _FOLLOW,
        "--metric": "a limit is of an objective: --objective says of which",
        "--route": "give both: a URL of the proxy and of the server; or write `route` in redline.yaml",
        "--same-answers": "answers are compared by `redline ab`",
    },
    "run": {
        "--format -f --output-format --out": _AS_A_FILE,
        "--for": "use -d TIME, the length of every load; `--more TIME` goes on with what is undecided",
    },
    "profile": {"--format -f --output-format --out": _AS_A_FILE},
    "load": {
        "--format -f --output-format --out": _AS_A_FILE,
        "--for": "use -d TIME",
        "--load": "use -c N for users, or -R RATE",
        "--port": "write the port into the URL",
        "--trials --metric --threshold --fail-on": "a load is a single trial: `redline ab` and `run` compare",
        "--on": "a load on the hosts of a cluster is a suite: `redline run SUITE --on ADDRESS`",
    },
}
_MEANINGS = {
    "users": "--vus --vu --max-vus --virtual-users --concurrency --concurrent --clients --client --workers --sessions "
    "--conn --parallel --u",
    "rate": "--rps --qps --req-rate --request-rate --arrival-rate --arrivalRate --target-rate --requests-per-second "
    "--rate-limit --ratelimit --throughput",
    "time": "--time --run-time --timelimit --time-limit --max-duration --length --seconds --test-duration --budget",
    "count": "--iterations --number --num --num-requests --total-requests --request-count --amount --max-requests "
    "--n -n",
    "keepalive": "--disable-keepalive --disable-keep-alive --disableKeepAlive --keepalive --keep-alive --keepAlive",
    "sign-in": "--basic-auth --auth",
    "type": "--content-type --contentType",
    "always": "--latency --print-latencies --latencies --percentiles --histogram --stats --summary --no-tui --html "
    "--disable-compression",
    "script": "--script --lua",
}
"""Options of load generators by what they mean: those of wrk, hey, oha, ab, k6, Locust, autocannon and others."""
_OF_GENERATORS = {option: meaning for meaning, options in _MEANINGS.items() for option in options.split()}
_BY_VALUE = {
    "-z": (re.compile(r"[\d.]+(?:ms|s|m|h)?"), "time"),
    "-a": (re.compile(r"[^:\s]+:.*"), "sign-in"),
    "-T": (re.compile(r"[\w.+-]+/[\w.+;= -]+"), "type"),
    "-t": (re.compile(r"[\d.]+(?:ms|s|m|h)"), "time"),
    "-u": (re.compile(r"\d+"), "users"),
    "-i": (re.compile(r"\d+"), "count"),
    "-r": (re.compile(r"\d+"), "rate"),
    "-p": (re.compile(r"\d+"), "depth"),
    "-w": (re.compile(r"\d+"), "threads"),
}
"""Letters that mean something else in curl: the value tells which is meant."""
_HERE = {
    "keepalive": "connections are kept: leave it out, or use `--no-keepalive`",
    "sign-in": "use `--user NAME:PASSWORD`",
    "type": "use `-H 'Content-Type: TYPE'`",
    "depth": "use `--depth N`, the requests on their way on a connection",
    "threads": "use `-t N`, the engine's threads",
    "always": "leave it out: the whole distribution is always measured and shown",
    "script": "what a script sends is written as a list, for `--requests FILE`",
}
_SAME_MEANING = {
    "users": frozenset(("-c", "--users")),
    "rate": frozenset(("-R",)),
    "time": frozenset(("-d",)),
    "count": frozenset(("--count",)),
}
_IN = {
    "load": {"users": "use `-c N`", "rate": "use `-R RATE`", "time": "use `-d TIME`", "count": "use `--count N`"},
    "limit": {"time": "use `--for TIME`, about the most that the search takes"},
    "run": {
        "users": "use `-u N`, the users of every closed load",
        "rate": "the suite says the rates; `--scale FACTOR` changes them all",
        "time": "use `-d TIME`, the length of every load",
        "count": "the suite says when a load ends, as by `count`",
    },
}
_UNKNOWN = re.compile(r"redline (\w+): no such option: ([^\s=]+)")
_THREADS = re.compile(r"redline (load|limit): invalid value for '-t' .*")
_EXTRA = re.compile(r"redline load: got unexpected extra argument\(s\) \((?P<word>[\d.]+)\)")
_NO_COMMAND = re.compile(r"redline: no such command '(?P<word>.*)'", re.DOTALL)


def instead_of(message: str, words: Sequence[str] = ()) -> str:
    """The hint for a message of typer about what another command, or another tool, has; empty for other messages.

    `words` are those of the command line: the value of an option may say which tool's it is.
    """
    if match := _NO_COMMAND.match(message):
        return _instead_of_a_command(match["word"])
    if match := _EXTRA.match(message):
        number = match["word"]
        return (
            f"`-q` prints less here; the rate of hey and oha is `-R {number}`" if _before(number, words) == "-q" else ""
        )
    if match := _THREADS.match(message):
        return _of_generators(match[1], "-t", words)
    if (match := _UNKNOWN.match(message)) is None:
        return ""
    command, option = match.groups()
    hints = _BY_COMMAND.get(command, {})
    own = next((hint for options, hint in hints.items() if option in options.split()), "")
    others = _of_generators(command, option, words)
    return (others if option in _BY_VALUE else own) or own or others or instead_of_curl(message)


def _instead_of_a_command(word: str) -> str:
    """The hint for a word that stands in place of a command."""
    from redline.suite.urls import is_like_a_url, is_url  # noqa: PLC0415 - the help imports nothing heavy

    if is_url(word) or is_like_a_url(word):
        return f"`redline load {quote(word)}` loads it"
    if word.endswith((".yaml", ".yml")):
        return f"`redline run {quote(word)}` runs a suite"
    if "{port}" in word or word.startswith("./"):
        return f"`redline load {quote(word)}` starts and loads it, `redline ab` compares two"
    return ""


def _of_generators(command: str, option: str, words: Sequence[str]) -> str:
    """The hint for an option of a load generator; empty for any other."""
    form, meaning = _BY_VALUE.get(option, (None, ""))
    if form is None or form.fullmatch(_after(option, words)) is None:
        meaning = _OF_GENERATORS.get(option, "")
    if not meaning or command not in {"load", "ab", "limit", "run", "profile"}:
        return ""
    hints = _IN.get("run" if command == "profile" else command, {})
    named = _SAME_MEANING.get(meaning, frozenset())
    same = next((hint for names, hint in _BY_COMMAND.get(command, {}).items() if named & {*names.split()}), "")
    hint = hints.get(meaning) or same or _HERE.get(meaning, "")
    pasted = "; `--like 'hey -z 5s URL'` takes a whole command of another tool" if command == "load" else ""
    return hint and f"{hint}{pasted}"


def _after(option: str, words: Sequence[str]) -> str:
    """The value of an option on the command line: the next word, or what follows in the same word."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(option):
            return word.removeprefix(option).removeprefix("=")
    return ""


def _before(value: str, words: Sequence[str]) -> str:
    return next((word for word, following in pairwise(words) if following == value), "")
