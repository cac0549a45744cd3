"""`--like`: the command line of another load generator, as flags of `redline load`. Pure.

The options and defaults are those that the tools document. None of the tools is run.
"""

import argparse
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from redline.errors import UsageError
from redline.suite.urls import is_url

_NOT_A_COMMAND = "write the command in quotes: --like 'wrk -t2 -c64 -d10s http://127.0.0.1:8080/'"
_UNTIL_COUNTED = "10m"
"""How long a load lasts at most that ends after a number of requests."""


@dataclass(frozen=True)
class Like:
    """What a command line of another tool means here.

    `flags` are fields of `LoadFlags` with their values. `says` is what the tool does not say of such a load,
    `ignored` what has no counterpart here, as written.
    """

    tool: str
    flags: Mapping[str, object]
    says: tuple[str, ...]
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Generator:
    """A load generator.

    `options` maps its options to names, `switches` those without a value. `shown` concern its output alone, and
    `refused` says what to do in place of an option. `read` makes flags of the values by name.
    """

    options: Mapping[str, str]
    read: Callable[[Mapping[str, Any]], dict[str, object]]
    says: tuple[str, ...]
    switches: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)


def read_like(text: str) -> Like:
    """The flags of `redline load` that make the load of this command line. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--like: {str(error).lower()}", hint=_NOT_A_COMMAND) from None
    words, targets = _attack(words)
    if words and words[0] == "k6":
        words = [words[0], *words[2:]] if words[1:2] == ["run"] else words
    name = words[0].rpartition("/")[2] if words else ""
    if name == "wrk" and any(word.startswith(("-R", "--rate")) for word in words):
        name = "wrk2"
    tool = _TOOLS.get(name)
    if tool is None:
        known = ", ".join(_TOOLS)
        raise UsageError(f"--like {text}: this is no command of a load generator", hint=f"known are {known}")
    values, ignored, rest = _parse(name, tool, words[1:])
    words = [*rest, *targets]
    urls = [word for word in words if is_url(word)]
    if len(urls) > 1:
        raise UsageError(f"--like: {name} is given {len(urls)} URLs", hint="a load here has one; see --requests")
    flags = tool.read(values)
    if urls:
        flags["url"] = urls[0]
        method = words[words.index(urls[0]) - 1] if words[0] != urls[0] else ""
        if name == "vegeta" and method.isupper():
            flags["method"] = method
    return Like(name, {key: value for key, value in flags.items() if value is not None}, tool.says, ignored)


def _attack(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of the load generator in a pipeline such as `echo 'GET URL' | vegeta attack … | vegeta report`."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    for command in commands:
        if command[:2] == ["vegeta", "attack"]:
            targets = [word for words in commands if words[:1] == ["echo"] for text in words for word in text.split()]
            return ["vegeta", *command[2:]], targets
    return words, []


class _Parser(argparse.ArgumentParser):
    """Raises UsageError in place of printing a usage text."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--like: {self.prog}: {message}", hint=f"compare with `{self.prog} --help`")


def _parse(name: str, tool: _Generator, words: list[str]) -> tuple[Mapping[str, Any], tuple[str, ...], list[str]]:
    """The values of options by name, the options without a counterpart, and the words that are no options."""
    parser = _Parser(prog=name, add_help=False, allow_abbrev=False)
    for options, dest in tool.options.items():
        action = "append" if dest in _REPEATED else "store"
        parser.add_argument(*options.split(), dest=dest, action=action)
    for options, dest in tool.switches.items():
        parser.add_argument(*options.split(), dest=dest, action="store_true")
    for option in tool.shown.split():
        parser.add_argument(option, dest="shown", action="append_const", const=option)
    for options in tool.refused:
        parser.add_argument(*options.split(), dest=f"refused {options}", nargs="?", const="")
    parsed, rest = parser.parse_known_args(words)
    values = vars(parsed)
    for options, why in tool.refused.items():
        if values[f"refused {options}"] is not None:
            raise UsageError(f"--like: {name} {options.split()[0]} has no counterpart", hint=why)
    unknown = tuple(word for word in rest if word.startswith("-"))
    return values, unknown, [word for word in rest if not word.startswith("-")]


_REPEATED = frozenset({"headers", "stages"})


def _duration(text: str | None, default: str | None = None) -> str | None:
    """A duration; a plain number means seconds, as in most of these tools."""
    return default if text is None else f"{text}s" if re.fullmatch(r"[\d.]+", text) else text


def _number(text: str | None, default: int) -> int:
    """A whole number, with a suffix such as `k` where tools take one. Raises UsageError."""
    if text is None:
        return default
    match = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if match is None:
        raise UsageError(f"--like: {text} is not a whole number", hint="write the command as you would run it")
    return int(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2].lower()]


def _headers(values: Mapping[str, Any], **more: str) -> list[str]:
    """Request headers: the given ones, and those that options of their own set."""
    described = {name: values.get(key) for name, key in more.items()}
    return [*(values.get("headers") or []), *(f"{name.replace('_', '-')}: {v}" for name, v in described.items() if v)]


def _body(values: Mapping[str, Any]) -> str | None:
    """The body, as a text or `@file`."""
    file = values.get("body_file")
    return values.get("body") if file is None else f"@{file.removeprefix('@')}"


def _until(values: Mapping[str, Any], default: int | None) -> dict[str, object]:
    """How long the load lasts: for a time, or until a number of requests was due."""
    lasts = _duration(values.get("lasts"))
    if lasts is not None:
        return {"duration": lasts}
    count = values.get("count")
    if count is None and default is None:
        return {}
    return {"count": _number(count, default or 0), "duration": _UNTIL_COUNTED}


def _wrk(values: Mapping[str, Any]) -> dict[str, object]:
    return {
        "connections": _number(values["connections"], 10),
        "threads": _number(values["threads"], 2),
        "duration": _duration(values["lasts"], "10s"),
        "timeout": _duration(values["timeout"], "2s"),
        "headers": _headers(values),
        "warmup": "0s",
    }


def _wrk2(values: Mapping[str, Any]) -> dict[str, object]:
    return _wrk(values) | {"rate": str(_number(values["rate"], 0)), "arrivals": "uniform", "warmup": "10s"}


def _hey(values: Mapping[str, Any]) -> dict[str, object]:
    return {
        "connections": _number(values["connections"], 50),
        **_until(values, 200),
        "pace": values["pace"],
        "method": values["method"] or "GET",
        "headers": _headers(values, Accept="accept", Content_Type="content_type", Host="host"),
        "body": _body(values),
        "timeout": _duration(values["timeout"], "20s"),
        "http2": values["http2"],
        "requests_per_connection": 1 if values["closes"] else None,
        "warmup": "0s",
    }


def _oha(values: Mapping[str, Any]) -> dict[str, object]:
    rate = values["rate"]
    return {
        "connections": _number(values["connections"], 50),
        **_until(values, 200),
        "rate": rate,
        "arrivals": "uniform" if rate else None,
        "method": values["method"] or "GET",
        "headers": _headers(values, Accept="accept", Content_Type="content_type", Host="host"),
        "body": _body(values),
        "timeout": _duration(values["timeout"]),
        "http2": values["http2"],
        "depth": _number(values["depth"], 1),
        "insecure": values["insecure"],
        "cacert": values["cacert"],
        "requests_per_connection": 1 if values["closes"] else None,
        "warmup": "0s",
    }


def _h2load(values: Mapping[str, Any]) -> dict[str, object]:
    return {
        "connections": _number(values["connections"], 1),
        **_until(values, 1),
        "depth": _number(values["depth"], 1),
        "threads": _number(values["threads"], 1),
        "headers": _headers(values),
        "body": _body(values),
        "timeout": _duration(values["timeout"]),
        "http2": not values["http1"],
        "insecure": True,
        "warmup": _duration(values["warmup"], "0s"),
    }


def _vegeta(values: Mapping[str, Any]) -> dict[str, object]:
    return {
        "method": "GET",
        "rate": _vegeta_rate(values["rate"] or "50/1s"),
        "arrivals": "uniform",
        "duration": values["lasts"] or _UNTIL_COUNTED,
        "connections": _number(values["connections"], 10000),
        "headers": _headers(values),
        "body": _body(values),
        "timeout": values["timeout"] or "30s",
        "http2": values["http2"],
        "insecure": values["insecure"],
        "cacert": values["cacert"],
        "warmup": "0s",
    }


def _vegeta_rate(text: str) -> str:
    """Requests per second of `100`, `100/s`, `300/1m` or `5/100ms`. Raises UsageError."""
    match = re.fullmatch(r"(\d+)(?:/(\d*)(ms|s|m|h))?", text)
    if match is None or match[1] == "0":
        hint = "write it as -rate=100/s; -rate=0 sends as fast as it can: use redline load -c N"
        raise UsageError(f"--like: vegeta -rate={text} is not a rate", hint=hint)
    seconds = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}[match[3]] * int(match[2] or 1)
    return f"{int(match[1]) / seconds:.12g}"


def _ab(values: Mapping[str, Any]) -> dict[str, object]:
    return {
        "connections": _number(values["connections"], 1),
        **_until(values, 1),
        "method": "HEAD" if values["head"] else "PUT" if values["put_file"] else values["method"],
        "headers": _headers(values, Content_Type="content_type", Cookie="cookie"),
        "body": _body({"body_file": values["put_file"] or values["body_file"]}),
        "timeout": _duration(values["timeout"], "30s"),
        "requests_per_connection": None if values["keeps"] else 1,
        "insecure": True,
        "warmup": "0s",
    }


def _k6(values: Mapping[str, Any]) -> dict[str, object]:
    stages = [f"{to}:{over}" for over, _, to in (text.partition(":") for text in values["stages"] or [])]
    return {
        "connections": _number(values["connections"], 1),
        **_until(values, None if stages else 1),
        "stages": stages or None,
        "insecure": values["insecure"],
        "timeout": "60s",
        "warmup": "0s",
    }


_CLOSED = (
    "a user waits for an answer before the next request, so while the server stalls nobody asks: "
    "times under a given rate need -R"
)
_MEAN = "a mean and a standard deviation say little of response times: read the percentiles"
_ALONE = "whether the load generator itself was the limit; engine lateness and the findings show it here"
_TOOLS = {
    "wrk": _Generator(
        {
            "-c --connections": "connections",
            "-t --threads": "threads",
            "-d --duration": "lasts",
            "-H --header": "headers",
            "--timeout": "timeout",
        },
        _wrk,
        (_CLOSED, _MEAN, "only statuses from 400 on count as errors, not wrong answers", _ALONE),
        shown="-L --latency -v --version",
        refused={"-s --script": "write what the script requests as a list: redline load --requests FILE"},
    ),
    "wrk2": _Generator(
        {
            "-c --connections": "connections",
            "-t --threads": "threads",
            "-d --duration": "lasts",
            "-R --rate": "rate",
            "-H --header": "headers",
            "--timeout": "timeout",
        },
        _wrk2,
        ("a rate that is not reached is not said in so many words", _ALONE),
        shown="-L --latency -U --u_latency -B --batch_latency -v --version",
        refused={"-s --script": "write what the script requests as a list: redline load --requests FILE"},
    ),
    "hey": _Generator(
        {
            "-n": "count",
            "-c": "connections",
            "-q": "pace",
            "-z": "lasts",
            "-m": "method",
            "-H": "headers",
            "-t": "timeout",
            "-A": "accept",
            "-d": "body",
            "-D": "body_file",
            "-T": "content_type",
            "-host": "host",
            "-cpus": "cpus",
        },
        _hey,
        (_CLOSED, _MEAN, "answers of any status count as responses", _ALONE),
        switches={"-h2": "http2", "-disable-keepalive": "closes"},
        shown="-o -disable-compression -disable-redirects",
        refused={"-x": "load the proxy itself", "-a": "give the header: -H 'Authorization: Basic …'"},
    ),
    "oha": _Generator(
        {
            "-n": "count",
            "-c": "connections",
            "-p": "depth",
            "-q": "rate",
            "-z --duration": "lasts",
            "-m --method": "method",
            "-H": "headers",
            "-t --timeout": "timeout",
            "-A": "accept",
            "-d": "body",
            "-D": "body_file",
            "-T": "content_type",
            "--host": "host",
            "--cacert": "cacert",
        },
        _oha,
        (_CLOSED, "with -q and without --latency-correction, waiting for a free connection is not counted", _ALONE),
        switches={"--http2": "http2", "--disable-keepalive": "closes", "--insecure": "insecure"},
        shown="--no-tui -j --json --latency-correction -w --wait-ongoing-requests-after-deadline "
        "--disable-compression --disable-color",
        refused={
            "--burst-delay": "there are no bursts here",
            "--rand-regex-url": "write the URLs as a list: redline load --requests FILE",
            "--urls-from-file": "write the URLs as a list: redline load --requests FILE",
            "-a": "give the header: -H 'Authorization: Basic …'",
            "-x": "load the proxy itself",
        },
    ),
    "h2load": _Generator(
        {
            "-n --requests": "count",
            "-c --clients": "connections",
            "-t --threads": "threads",
            "-m --max-concurrent-streams": "depth",
            "-D --duration": "lasts",
            "-H --header": "headers",
            "-d --data": "body_file",
            "-N --connection-inactivity-timeout": "timeout",
            "--warm-up-time": "warmup",
        },
        _h2load,
        (_CLOSED, "percentiles are not printed, only minimum, maximum, mean and deviation", _ALONE),
        switches={"--h1": "http1"},
        shown="-v --verbose",
        refused={
            "-i --input-file": "write the URLs as a list: redline load --requests FILE",
            "-r --rate": "clients cannot be opened at a rate; for requests at a rate, use -R",
            "-p --no-tls-proto": "HTTP/2 without TLS starts at once here",
        },
    ),
    "vegeta": _Generator(
        {
            "-rate --rate": "rate",
            "-duration --duration": "lasts",
            "-connections --connections": "connections",
            "-header --header": "headers",
            "-body --body": "body_file",
            "-timeout --timeout": "timeout",
            "-root-certs --root-certs": "cacert",
            "-workers --workers": "workers",
            "-max-workers --max-workers": "workers",
            "-name --name": "name",
            "-output --output": "output",
        },
        _vegeta,
        ("times begin when a request is written, so the lateness of the attack itself is not in them", _ALONE),
        switches={"-http2 --http2": "http2", "-insecure --insecure": "insecure"},
        refused={
            "-targets --targets": "write the targets as a list: redline load --requests FILE",
            "-max-connections --max-connections": "give -connections",
        },
    ),
    "ab": _Generator(
        {
            "-n": "count",
            "-c": "connections",
            "-t": "lasts",
            "-H": "headers",
            "-C": "cookie",
            "-p": "body_file",
            "-u": "put_file",
            "-T": "content_type",
            "-m": "method",
            "-s": "timeout",
        },
        _ab,
        (
            _CLOSED,
            _MEAN,
            "ab speaks HTTP/1.0; here it is 1.1",
            "answers of another length are counted as failed, which dynamic pages always have",
            "whether its one thread, which drives all connections, was the limit",
        ),
        switches={"-k": "keeps", "-i": "head"},
        shown="-l -q -r -d -S -w",
        refused={"-X": "load the proxy itself", "-A": "give the header: -H 'Authorization: Basic …'"},
    ),
    "k6": _Generator(
        {
            "-u --vus": "connections",
            "-d --duration": "lasts",
            "-i --iterations": "count",
            "-s --stage": "stages",
            "-o --out": "output",
        },
        _k6,
        (
            _CLOSED,
            "the script is not read: what it does between requests is missing here",
            "response times begin when a request is sent, and a check that fails fails no load",
            _ALONE,
        ),
        switches={"--insecure-skip-tls-verify": "insecure"},
        shown="-q --quiet --no-summary --no-usage-report",
    ),
}
