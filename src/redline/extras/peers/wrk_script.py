"""The requests of a script of wrk: what `init` and `request` make of constants and arguments. Pure.

Source: wrk's SCRIPTING, and src/wrk.lua, which fills in what `wrk.format` is not given.

The script is not executed: its values are followed as far as they are known, and what a request leaves behind
that it did not find is unknown from then on. A request that depends on something unknown is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from redline.errors import Location, UsageError
from redline.extras.peers.lua import Block, Constant, Index, LuaError, Name, parse
from redline.extras.peers.lua_effects import effects
from redline.extras.peers.lua_flow import Flow, Refused
from redline.extras.peers.lua_values import (
    Batch,
    FileText,
    LuaClosure,
    LuaTable,
    Unknown,
    Value,
    WrittenRequest,
    number,
    text,
)

_LIST = (
    "leave out -s, and list what is requested: redline load --requests FILE; {seq}, {rand:1..9} and {pick:FILE} there "
    "are values that change"
)
_NAMES = {"path": "the path", "method": "the method", "headers": "a header", "body": "the body"}


@dataclass(frozen=True)
class Target:
    """What the command line says besides the script: the URL's path, and the headers."""

    path: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ScriptRequest:
    """A request of a script. A body is a text or `@` and a file, as `--body` takes them."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: str | FileText | None


@dataclass(frozen=True)
class Script:
    """The requests that each connection writes at once, and the time that it waits before."""

    requests: tuple[ScriptRequest, ...]
    think_ms: float | None = None
    ignored: tuple[str, ...] = ()


def read_script(source: str, file: str, target: Target, arguments: Sequence[str]) -> Script:
    """Return what a script sends. Raises UsageError at the line that sends something else from request to request."""
    try:
        return _ScriptReader(parse(source), target).read(arguments)
    except LuaError as error:
        message = f"--like: this is not Lua: {error.message}"
        raise UsageError(message, hint="is it the script that wrk runs?", place=Location(file, error.line)) from None
    except RecursionError:
        hint = "leave out -s, and list what is requested: redline load --requests FILE"
        raise UsageError("--like: it nests too deeply", hint=hint, place=Location(file)) from None
    except Refused as error:
        raise UsageError(f"--like: {error.why}", hint=error.hint, place=Location(file, error.line or None)) from None


def _refuse(line: int, why: str, hint: str = _LIST) -> NoReturn:
    raise Refused(line, why, hint)


class _ScriptReader:
    def __init__(self, script: Block, target: Target) -> None:
        headers = LuaTable(folds_case=True)
        for name, value in target.headers:
            headers.put(name, value, 0)
        self.wrk = LuaTable({"method": "GET", "path": target.path, "headers": headers})
        self.flow = Flow(self.wrk)
        self.flow.file(script)
        self.script = script

    def read(self, arguments: Sequence[str]) -> Script:
        self._threads()
        init = self._function("init")
        if init is not None:
            words: LuaTable = LuaTable({float(at): word for at, word in enumerate(arguments, 1)})
            self.flow.call(init, (words,), init.function.line)
        self.flow.default = self.flow.format((), 0)
        for name in ("response", "delay"):
            if (function := self._function(name)) is not None:
                self.flow.forget(function.function.body, function.scope, "answers change it")
        request = self._function("request")
        sent = self.flow.default if request is None else self._steady(request)
        think = self._delay()
        if not isinstance(sent, Batch) or not sent.requests:
            line = request.function.line if request else 1
            if isinstance(sent, Unknown):
                _refuse(sent.line, f"what `request` returns is not known: {sent.why}")
            _refuse(line, "`request` returns no request that `wrk.format` or `wrk.request` makes")
        if think is not None and len(sent.requests) > 1:
            _refuse(self._line("delay"), "there is no `delay` between requests of a pipeline", "leave out either")
        ignored = tuple(f"`{name}`" for name in ("response", "done") if self._function(name))
        return Script(tuple(map(_request, sent.requests)), think, ignored)

    def _function(self, name: str) -> LuaClosure | None:
        value = self.flow.globals.names.get(name)
        if value is None or isinstance(value, LuaClosure):
            return value
        if isinstance(value, Unknown):
            _refuse(value.line, f"`{name}` is not known: {value.why}")
        return None

    def _line(self, name: str) -> int:
        function = self._function(name)
        return 1 if function is None else function.function.line

    def _threads(self) -> None:
        """What `setup` sets in each thread is unknown there; where it chooses an address, there are several targets."""
        setup = self._function("setup")
        if setup is None:
            return
        thread = (*setup.function.parameters, "thread")[0]
        for effect in effects(setup.function.body):
            if effect.target == Index(effect.line, Name(effect.line, thread), Constant(effect.line, "addr")):
                _refuse(effect.line, "`setup` sends threads to several addresses", "give --addresses all")
            call = effect.call
            if call is None or call.method != "set":
                continue
            name = self.flow.constant(call.arguments[:1])
            if name is None:
                _refuse(call.line, "`setup` sets variables of threads whose names are not known")
            self.flow.globals.names[name] = Unknown(call.line, f"`setup` sets {name} in each thread")

    def _steady(self, request: LuaClosure) -> Value:
        """Return the request that is sent each time; what the ones before change is unknown."""
        first = self.flow.call_again(request)
        for _ in range(10):
            again = self.flow.call_again(request)
            if again.changed:
                continue
            if isinstance(again.value, Batch) and again.value != first.value:
                for sent in again.value.requests:
                    _request(sent)
                _refuse(_differs(first.value, again.value), "the first request differs from those after it")
            return again.value
        _refuse(request.function.line, "what changes from request to request is not understood")

    def _delay(self) -> float | None:
        delay = self._function("delay")
        if delay is None:
            return None
        value = self.flow.call(delay, (), delay.function.line)
        known = number(value)
        if isinstance(value, Unknown) or known is None or known < 0:
            why = value.why if isinstance(value, Unknown) else "it is no number"
            line = value.line if isinstance(value, Unknown) else delay.function.line
            hint = "leave `delay` out of the script, and give --think 30ms, or --think exp:30ms for times that differ"
            _refuse(line, f"what `delay` returns is not known: {why}", hint)
        return known or None


def _differs(first: Value, again: Batch) -> int:
    lines = [sent.line for sent in again.requests]
    if isinstance(first, Batch):
        lines = [
            sent.line for sent, other in zip(again.requests, first.requests, strict=False) if sent != other
        ] or lines
    return lines[0]


def _request(sent: WrittenRequest) -> ScriptRequest:
    """The request with all its parts known. Raises Refused."""
    parts: Mapping[str, Value | object] = {"method": sent.method, "path": sent.path, "body": sent.body}
    for name, value in parts.items():
        if isinstance(value, Unknown):
            _refuse(value.line, f"{_NAMES[name]} is not known: {value.why}", _hint(name, value))
    if isinstance(sent.headers, Unknown):
        _refuse(sent.headers.line, f"{_NAMES['headers']} is not known: {sent.headers.why}")
    method, path = text(sent.method), text(sent.path)
    if not method.isascii() or not method.isalpha():
        _refuse(sent.line, f"`{method}` is no method")
    if not path.startswith("/"):
        _refuse(sent.line, f"the path `{path}` does not begin with /", "give the server in the URL")
    body = sent.body if isinstance(sent.body, FileText) else None if sent.body is None else text(sent.body)
    return ScriptRequest(method, path, tuple(_headers(sent.line, sent.headers)), body)


def _hint(name: str, value: Unknown) -> str:
    return f"{_LIST}; a body in a file is --body @FILE" if name == "body" and "io.open" in value.why else _LIST


def _headers(line: int, headers: Sequence[tuple[str, Value]]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        if isinstance(value, Unknown):
            _refuse(value.line, f"the header {name} is not known: {value.why}")
        if not isinstance(value, str | float | bool):
            _refuse(line, f"the header {name} is no text")
        if name.lower() != "content-length":
            yield name, text(value)
