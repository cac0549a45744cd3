"""Follow the values of a Lua script as far as they are known. Pure; what would need a machine is unknown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redline.extras.peers.lua import (
    Assign,
    Block,
    Break,
    Constant,
    Expression,
    For,
    Function,
    If,
    Index,
    Loop,
    LuaCall,
    Name,
    Operation,
    Return,
    Statement,
    TableOf,
    Varargs,
)
from redline.extras.peers.lua_effects import effects, local_names, may_leave, nodes
from redline.extras.peers.lua_values import (
    FUNCTIONS,
    Batch,
    Builtin,
    FileText,
    Key,
    LuaClosure,
    LuaTable,
    Scope,
    Unknown,
    Value,
    WrittenRequest,
    calculated,
    concatenated,
    is_true,
    number,
    same,
    single,
)

_MOST_STEPS = 100_000
_SPACES = frozenset({"math", "string", "table", "os", "io", "debug", "package", "jit", "bit", "ffi", "coroutine"})
_BASE = frozenset(
    [
        "print",
        "ipairs",
        "pairs",
        "tostring",
        "tonumber",
        "type",
        "require",
        "setmetatable",
        "getmetatable",
        "pcall",
        "error",
        "assert",
        "select",
        "unpack",
        "next",
        "rawget",
        "rawset",
        "dofile",
        "loadfile",
        "loadstring",
        "load",
        "collectgarbage",
    ]
)
_SILENT = frozenset({"print", "io.write", "io.flush", "math.randomseed", "collectgarbage", "table.sort"})
"""Functions whose result nobody needs."""
_RUNS_MORE = frozenset({"dofile", "loadfile", "loadstring", "load"})
_CHANGES_TABLE = frozenset({"table.insert", "table.remove", "table.sort", "rawset", "setmetatable"})
_OF_WRK = frozenset({"format", "request", "lookup", "connect", "resolve", "setup", "init"})
_FIXED = _OF_WRK | {"scheme", "host", "port", "thread", "addrs"}
"""Fields of `wrk` that a script that is read may not change."""
_STOPS = "--count N ends a load after N requests, -d TIME after a time"
_READ = "leave it out, or leave out -s and list what is requested: redline load --requests FILE"


T = TypeVar("T", Scope, LuaTable)


class Refused(Exception):  # noqa: N818 - it is turned into a UsageError
    """A script does at this line what a load of Redline would not do."""

    def __init__(self, line: int, why: str, hint: str) -> None:
        super().__init__(why)
        self.line, self.why, self.hint = line, why, hint


@dataclass(frozen=True)
class Again:
    """What a function returns when it is called once more, and whether it left anything behind that is new."""

    value: Value
    changed: bool


@dataclass(frozen=True)
class _BlockEnd:
    """A block ended early: by `break`, or with the value of `return`."""

    value: Value = None
    is_break: bool = False


class Flow:
    """The variables of a script, and what its functions do with them."""

    def __init__(self, wrk: LuaTable) -> None:
        self.wrk = wrk
        for name in _OF_WRK:
            wrk.fields[name] = Builtin(f"wrk.{name}")
        for name in ("scheme", "host", "port", "thread"):
            wrk.fields[name] = Unknown(0, f"`wrk.{name}`")
        self.globals = Scope(None, {"wrk": wrk})
        self.default: Value = None
        self._steps = 0
        self._before: set[int] | None = None
        self._old: dict[tuple[int, Key], tuple[Scope | LuaTable, Value, int]] = {}
        self._made: list[Scope | LuaTable] = []

    def file(self, script: Block) -> None:
        """Take in the functions and variables of a script."""
        self._block(script, self._scope(self.globals))

    def call(self, closure: LuaClosure, arguments: Sequence[Value], line: int) -> Value:
        """Return what a function of the script returns."""
        self._step(line)
        scope, function = self._scope(closure.scope), closure.function
        for at, name in enumerate(function.parameters):
            scope.names[name] = arguments[at] if at < len(arguments) else None
        ended = self._block(function.body, scope)
        return ended.value if ended is not None else None

    def call_again(self, closure: LuaClosure) -> Again:
        """Call a function, and forget the values that it found and changed."""
        self._old, self._made, self._before = {}, [], set()
        value = self.call(closure, (), closure.function.line)
        self._before, changed = None, False
        for (_, key), (holder, old, line) in self._old.items():
            names = holder.names if isinstance(holder, Scope) else holder.fields
            new = names.get(key)
            if same(old, new):
                continue
            changed = changed or not isinstance(old, Unknown)
            known = (
                old if isinstance(old, Unknown) else Unknown(line, f"{_key_text(key)} changes from request to request")
            )
            names[key] = known
        return Again(value, changed)

    def forget(self, block: Block, scope: Scope, why: str, seen: frozenset[int] = frozenset()) -> None:
        """Make unknown what these statements could change. Raises Refused where they end the load."""
        if id(block) in seen:
            return
        seen, inner = seen | {id(block)}, local_names(block)
        for effect in effects(block):
            if effect.call is not None:
                self._forget_call(effect.call, block, scope, why, seen)
            elif isinstance(effect.target, Name):
                name = effect.target.name
                self._set(scope.of(name), name, Unknown(effect.line, f"{name}: {why}"), effect.line)
            elif isinstance(effect.target, Index):
                self._forget_field(effect.target, block, scope, why, inner)

    def constant(self, arguments: Sequence[Expression]) -> str | None:
        """The text that is written as the only argument; None for anything else."""
        first = arguments[0] if arguments else None
        return first.value if isinstance(first, Constant) and isinstance(first.value, str) else None

    def format(self, arguments: Sequence[Value], line: int) -> Value:
        """A request as `wrk.format` makes it."""
        method, path, headers, body = (*arguments, None, None, None, None)[:4]
        table = self.wrk.get("headers") if headers is None else headers
        lines = table.headers() if isinstance(table, LuaTable) else None
        if lines is None:
            lines = table if isinstance(table, Unknown) else Unknown(line, "the headers are no table")
        return Batch(
            (
                WrittenRequest(
                    line,
                    self.wrk.get("method") if method is None else method,
                    self.wrk.get("path") if path is None else path,
                    lines,
                    self.wrk.get("body") if body is None else body,
                ),
            )
        )

    def _scope(self, parent: Scope) -> Scope:
        return self._new(Scope(parent))

    def _new(self, made: T) -> T:
        if self._before is not None:
            self._before.add(id(made))
            self._made.append(made)
        return made

    def _set(self, holder: Scope | LuaTable, key: Key, value: Value, line: int) -> None:
        if self._before is not None and id(holder) not in self._before:
            names = holder.names if isinstance(holder, Scope) else holder.fields
            self._old.setdefault((id(holder), key), (holder, names.get(key), line))
        if isinstance(holder, Scope):
            holder.names[str(key)] = value
        else:
            holder.put(key, value, line)

    def _put(self, table: LuaTable, key: Value, value: Value, line: int) -> None:
        if table is self.wrk and (not isinstance(key, str) or key in _FIXED):
            raise Refused(line, f"it changes `wrk.{key if isinstance(key, str) else '…'}`", _READ)
        if isinstance(key, str | float | bool):
            self._set(table, key.lower() if table.folds_case and isinstance(key, str) else key, value, line)
            if table.folds_case and isinstance(key, str):
                table.spellings[key.lower()] = key
        else:
            table.put(key, value, line)

    def _block(self, block: Block, scope: Scope) -> _BlockEnd | None:
        for statement in block:
            self._step(statement.line)
            if isinstance(statement, Assign) and statement.is_local:
                values = self._values(statement.values, len(statement.targets), scope)
                names = [target.name for target in statement.targets if isinstance(target, Name)]
                if any(name in scope.names for name in names):
                    scope = self._scope(scope)
                scope.names.update(zip(names, values, strict=True))
            elif (ended := self._statement(statement, scope)) is not None:
                return ended
        return None

    def _step(self, line: int) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Refused(line, f"it takes more than {_MOST_STEPS:,} steps", _READ)

    def _statement(self, statement: Statement, scope: Scope) -> _BlockEnd | None:
        match statement:
            case LuaCall():
                self._value(statement, scope)
            case Assign(line, targets, values):
                for target, value in zip(targets, self._values(values, len(targets), scope), strict=True):
                    self._assign(target, value, scope, line)
            case Return(line, values):
                several = Unknown(line, "a function returns several values")
                return _BlockEnd(several if len(values) > 1 else self._value(values[0], scope) if values else None)
            case Break():
                return _BlockEnd(is_break=True)
            case If():
                return self._if(statement, scope)
            case Loop():
                return self._loop(statement, scope)
            case For():
                return self._for(statement, scope)
        return None

    def _assign(self, target: Name | Index, value: Value, scope: Scope, line: int) -> None:
        if isinstance(target, Name):
            self._set(scope.of(target.name), target.name, value, line)
            return
        table, key = self._value(target.table, scope), self._value(target.key, scope)
        if isinstance(table, LuaTable):
            self._put(table, key, value, line)
        elif isinstance(table, Unknown) and self._constant_key(target) == "addr":
            raise Refused(line, "it sends a thread to another address", "give --addresses all")

    def _constant_key(self, index: Index) -> str | None:
        return self.constant((index.key,))

    def _if(self, statement: If, scope: Scope) -> _BlockEnd | None:
        for at, (condition, block) in enumerate(statement.branches):
            value = self._value(condition, scope)
            if isinstance(value, Unknown):
                for _, other in statement.branches[at:]:
                    self._leave_out(other, scope, value, statement.line)
                return None
            if is_true(value):
                return self._block(block, self._scope(scope))
        return None

    def _leave_out(self, block: Block, scope: Scope, why: Unknown, line: int) -> None:
        """Forget what a block could change that is executed or not. Raises Refused if it may end its function."""
        if may_leave(block):
            raise Refused(line, f"what follows depends on what is not known: {why.why}", _READ)
        self.forget(block, scope, why.why)

    def _loop(self, statement: Loop, scope: Scope) -> _BlockEnd | None:
        while True:
            self._step(statement.line)
            inner = self._scope(scope)
            if statement.is_until and (ended := self._block(statement.body, inner)) is not None:
                return None if ended.is_break else ended
            value = self._value(statement.condition, inner if statement.is_until else scope)
            if isinstance(value, Unknown):
                self._leave_out(statement.body, scope, value, statement.line)
                return None
            if is_true(value) == statement.is_until:
                return None
            if not statement.is_until and (ended := self._block(statement.body, inner)) is not None:
                return None if ended.is_break else ended

    def _for(self, statement: For, scope: Scope) -> _BlockEnd | None:
        rounds = self._in(statement, scope) if statement.is_in else self._counted(statement, scope)
        if isinstance(rounds, Unknown):
            self._leave_out(statement.body, scope, rounds, statement.line)
            return None
        for values in rounds:
            self._step(statement.line)
            inner = self._scope(scope)
            inner.names.update({name: (*values, None, None)[at] for at, name in enumerate(statement.names[:2])})
            if (ended := self._block(statement.body, inner)) is not None:
                return None if ended.is_break else ended
        return None

    def _counted(self, statement: For, scope: Scope) -> Iterator[tuple[Value, ...]] | Unknown:
        values = [self._value(value, scope) for value in statement.values]
        for value in values:
            if isinstance(value, Unknown):
                return value
        known = [number(value) for value in values]
        first, last, step = (*known, 1.0)[:3]
        if first is None or last is None or not step:
            return Unknown(statement.line, "the loop counts from or to what is no number")
        return ((first + at * step,) for at in range(max(int((last - first) // step) + 1, 0)))

    def _in(self, statement: For, scope: Scope) -> Iterator[tuple[Value, ...]] | Unknown:
        call = statement.values[0]
        value = self._value(call.function, scope) if isinstance(call, LuaCall) and not call.method else None
        if (
            not isinstance(call, LuaCall)
            or value not in {Builtin("ipairs"), Builtin("pairs")}
            or len(call.arguments) != 1
        ):
            result = self._value(call, scope)
            return result if isinstance(result, Unknown) else Unknown(statement.line, "what this loop goes through")
        table = self._value(call.arguments[0], scope)
        if isinstance(table, Unknown):
            return table
        if not isinstance(table, LuaTable) or table.unknown is not None:
            return (table.unknown if isinstance(table, LuaTable) else None) or Unknown(statement.line, "no table")
        if value == Builtin("ipairs"):
            return iter([(float(at), table.fields[float(at)]) for at in range(1, table.length + 1)])
        return iter(list(table.fields.items()))

    def _values(self, expressions: Sequence[Expression], count: int, scope: Scope) -> list[Value]:
        values = [self._value(expression, scope) for expression in expressions]
        if len(values) < count and expressions and isinstance(expressions[-1], LuaCall | Varargs):
            more = Unknown(expressions[-1].line, "one of several results of a function")
            return [*values, *[more] * (count - len(values))]
        return [*values, *[None] * count][:count]

    def _value(self, expression: Expression, scope: Scope) -> Value:  # noqa: PLR0911 - one for each kind
        self._step(expression.line)
        match expression:
            case Constant(_, value):
                return value
            case Name(_, name):
                return self._variable(name, scope)
            case Index(line, table, key):
                return self._field(self._value(table, scope), self._value(key, scope), line)
            case Function():
                return LuaClosure(expression, scope)
            case TableOf(line, fields):
                table_made = self._new(LuaTable())
                for at, of_field in fields:
                    self._put(table_made, self._value(at, scope), self._value(of_field, scope), line)
                return table_made
            case Operation():
                return self._operation(expression, scope)
            case LuaCall():
                return self._called(expression, scope)
            case Varargs(line):
                return Unknown(line, "`...`")

    def _variable(self, name: str, scope: Scope) -> Value:
        holder = scope.of(name)
        if name in holder.names:
            return holder.names[name]
        return Builtin(name) if name in _SPACES | _BASE else None

    def _field(self, table: Value, key: Value, line: int) -> Value:
        if isinstance(table, LuaTable):
            found = table.get(key)
            return Unknown(line, found.why) if isinstance(found, Unknown) and not found.line else found
        if isinstance(table, Builtin) and isinstance(key, str):
            return Builtin(f"{table.name}.{key}")
        return table if isinstance(table, Unknown) else Unknown(line, "a field of what is no table")

    def _operation(self, operation: Operation, scope: Scope) -> Value:  # noqa: PLR0911 - one for each kind
        line, operator = operation.line, operation.operator
        first = self._value(operation.operands[0], scope)
        if operator in {"and", "or"}:
            if isinstance(first, Unknown):
                self.forget((Return(line, operation.operands[1:]),), scope, first.why)
                return first
            return first if is_true(first) == (operator == "or") else self._value(operation.operands[1], scope)
        if operator == "not" or len(operation.operands) == 1:
            return single(operator, first, line)
        second = self._value(operation.operands[1], scope)
        for value in (first, second):
            if isinstance(value, Unknown):
                return value
        if operator == "..":
            return concatenated((first, second), "", line)
        if operator in {"==", "~="}:
            return same(first, second) == (operator == "==")
        return calculated(operator, first, second, line)

    def _called(self, call: LuaCall, scope: Scope) -> Value:
        line = call.line
        if call.method == "stop":
            raise Refused(line, "it stops a thread", _STOPS)
        owner = self._value(call.function, scope)
        arguments = [self._value(argument, scope) for argument in call.arguments]
        if call.method:
            function, arguments = self._method(owner, call.method), [owner, *arguments]
        else:
            function = owner
        if isinstance(function, LuaClosure):
            return self.call(function, arguments, line)
        if isinstance(function, Builtin):
            return self._builtin(function.name, arguments, line)
        if isinstance(function, Unknown):
            return Unknown(function.line or line, function.why)
        return Unknown(line, "it calls what is no function")

    def _method(self, owner: Value, method: str) -> Value:
        if isinstance(owner, str):
            return Builtin(f"string.{method}")
        if isinstance(owner, FileText):
            return Builtin(f"file.{method}")
        return owner.get(method) if isinstance(owner, LuaTable) else owner if isinstance(owner, Unknown) else None

    def _builtin(self, name: str, arguments: Sequence[Value], line: int) -> Value:  # noqa: C901, PLR0911 - one for each function
        if name == "os.exit":
            raise Refused(line, "it ends wrk", _STOPS)
        if name in _RUNS_MORE:
            raise Refused(line, f"`{name}` runs another script, which is not read", _READ)
        if name == "wrk.format":
            return self.format(arguments, line)
        if name == "wrk.request":
            return self.default
        if name in _SILENT or name == "file.close":
            return None
        if name == "io.open" and isinstance(arguments[0] if arguments else None, str):
            return FileText(str(arguments[0]), is_open=True)
        if name == "file.read" and list(arguments[1:]) in (["*all"], ["*a"], ["a"]):
            file = arguments[0]
            return FileText(file.path) if isinstance(file, FileText) else None
        table = arguments[0] if arguments else None
        if name == "table.insert" and isinstance(table, LuaTable) and len(arguments) == 2:
            self._put(table, float(table.length + 1), arguments[1], line)
            return None
        if name in _CHANGES_TABLE and isinstance(table, LuaTable):
            table.unknown = Unknown(line, f"`{name}`")
        for argument in arguments:
            if isinstance(argument, Unknown):
                return argument
        known = FUNCTIONS.get(name)
        return known(arguments, line) if known is not None and arguments else Unknown(line, f"`{name}`")

    def _forget_call(self, call: LuaCall, block: Block, scope: Scope, why: str, seen: frozenset[int]) -> None:
        if call.method == "stop":
            raise Refused(call.line, "it stops a thread", _STOPS)
        function = self._known(call.function, scope)
        if isinstance(function, Builtin):
            if function.name == "os.exit":
                raise Refused(call.line, "it ends wrk", _STOPS)
            if function.name in _CHANGES_TABLE and call.arguments:
                table = self._known(call.arguments[0], scope)
                self._unknown_tables(
                    [table] if isinstance(table, LuaTable) else self._named_tables(block, scope), call.line, why
                )
        if isinstance(function, LuaClosure):
            self.forget(function.function.body, function.scope, why, seen)
        if call.method and isinstance(function, LuaTable):
            self._unknown_tables([function], call.line, why)

    def _forget_field(self, target: Index, block: Block, scope: Scope, why: str, inner: set[str]) -> None:
        root: Expression = target
        while isinstance(root, Index):
            root = root.table
        table = None if isinstance(root, Name) and root.name in inner else self._known(target.table, scope)
        key = self._constant_key(target)
        if not isinstance(table, LuaTable):
            self._unknown_tables(self._named_tables(block, scope), target.line, why)
        elif key is None:
            self._unknown_tables([table], target.line, why)
        else:
            self._put(table, key, Unknown(target.line, f"{key}: {why}"), target.line)

    def _named_tables(self, block: Block, scope: Scope) -> list[Value]:
        """The tables that these statements name."""
        return [self._variable(node.name, scope) for node in nodes(block) if isinstance(node, Name)]

    def _unknown_tables(self, tables: Sequence[Value], line: int, why: str) -> None:
        for table in tables:
            if isinstance(table, LuaTable):
                table.unknown = table.unknown or Unknown(line, why)

    def _known(self, expression: Expression, scope: Scope) -> Value:
        """The value of a variable, or of a field of one, without calls."""
        if isinstance(expression, Name):
            return self._variable(expression.name, scope)
        if isinstance(expression, Index) and isinstance(expression.key, Constant):
            return self._field(self._known(expression.table, scope), expression.key.value, expression.line)
        return None


def _key_text(key: Key) -> str:
    return key if isinstance(key, str) else f"[{key:g}]"
