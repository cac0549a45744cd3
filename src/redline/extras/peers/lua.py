"""Parse Lua 5.1, the language of wrk's scripts, into a tree. Pure; nothing is executed.

Source: https://www.lua.org/manual/5.1/manual.html#8
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeAlias

_KEYWORDS = frozenset(
    [
        "and",
        "break",
        "do",
        "else",
        "elseif",
        "end",
        "false",
        "for",
        "function",
        "if",
        "in",
        "local",
        "nil",
        "not",
        "or",
        "repeat",
        "return",
        "then",
        "true",
        "until",
        "while",
    ]
)
_TOKEN = re.compile(
    r"(?P<blank>\s+|--\[(?P<level>=*)\[.*?\](?P=level)\]|--[^\n]*)"
    r"|(?P<long>\[(?P<equals>=*)\[.*?\](?P=equals)\])"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<sign>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}\[\];:,.])",
    re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(\d{1,3}|x[0-9a-fA-F]{2}|z\s*|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_BINDS = {
    "or": (1, 1), "and": (2, 2),
    "<": (3, 3), ">": (3, 3), "<=": (3, 3), ">=": (3, 3), "~=": (3, 3), "==": (3, 3),
    "..": (5, 4), "+": (6, 6), "-": (6, 6), "*": (7, 7), "/": (7, 7), "%": (7, 7), "^": (10, 9),
}  # fmt: skip
"""How strongly an operator binds what stands to its left and to its right."""
_UNARY_BINDS = 8


class LuaError(Exception):
    """The text is not Lua, from this line on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True)
class Constant:
    """A text, a number, a boolean or nil."""

    line: int
    value: str | float | bool | None


@dataclass(frozen=True)
class Name:
    """A variable."""

    line: int
    name: str


@dataclass(frozen=True)
class Index:
    """`table[key]` and `table.key`."""

    line: int
    table: "Expression"
    key: "Expression"


@dataclass(frozen=True)
class LuaCall:
    """`function(…)`, or with a `method` `object:method(…)`."""

    line: int
    function: "Expression"
    method: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Function:
    """A function without its name."""

    line: int
    parameters: tuple[str, ...]
    body: "Block"


@dataclass(frozen=True)
class Operation:
    """An operator with one or two operands."""

    line: int
    operator: str
    operands: "tuple[Expression, ...]"


@dataclass(frozen=True)
class TableOf:
    """`{key = value, …}`; the key of a value without one is its position."""

    line: int
    fields: "tuple[tuple[Expression, Expression], ...]"


@dataclass(frozen=True)
class Varargs:
    """`...`."""

    line: int


@dataclass(frozen=True)
class Assign:
    """`a, b = c, d`; `is_local` declares the names."""

    line: int
    targets: "tuple[Name | Index, ...]"
    values: "tuple[Expression, ...]"
    is_local: bool = False


@dataclass(frozen=True)
class If:
    """Conditions with their blocks; `else` has the condition true."""

    line: int
    branches: "tuple[tuple[Expression, Block], ...]"


@dataclass(frozen=True)
class Loop:
    """`while`, or with `is_until` `repeat`."""

    line: int
    condition: "Expression"
    body: "Block"
    is_until: bool = False


@dataclass(frozen=True)
class For:
    """`for i = a, b, c`, or with `is_in` `for k, v in …`."""

    line: int
    names: tuple[str, ...]
    values: "tuple[Expression, ...]"
    body: "Block"
    is_in: bool = False


@dataclass(frozen=True)
class Return:
    """`return …`."""

    line: int
    values: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Break:
    """`break`."""

    line: int


Expression: TypeAlias = Constant | Name | Index | LuaCall | Function | Operation | TableOf | Varargs
Statement: TypeAlias = Assign | If | Loop | For | Return | Break | LuaCall
Block: TypeAlias = tuple[Statement, ...]


def parse(text: str) -> Block:
    """Return the statements of a script. Raises LuaError."""
    parser = _Parser(text)
    block = parser.block()
    if parser.token != "":
        parser.fail()
    return block


class _Parser:
    """Tokens are texts: a name, a keyword or a sign as it is written, constants by their `kind`; `` at the end."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def line(self) -> int:
        return self._tokens[self._at][0]

    @property
    def kind(self) -> str:
        return self._tokens[self._at][1]

    @property
    def token(self) -> str:
        """The token, unless it is a text, which could look like a sign."""
        return "<text>" if self.kind == "text" else self._tokens[self._at][2]

    def fail(self) -> NoReturn:
        raise LuaError(self.line, f"`{self.token}` is not expected here" if self.token else "the script ends too early")

    def next(self) -> str:
        value = self._tokens[self._at][2]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return value

    def sees(self, token: str) -> bool:
        """Whether the next token is this one."""
        return self.token == token

    def takes(self, *tokens: str) -> bool:
        """Whether the next token is one of these, which is then read."""
        if self.token not in tokens or self.token == "":
            return False
        self.next()
        return True

    def expect(self, token: str) -> None:
        if not self.takes(token):
            self.fail()

    def name(self) -> str:
        if self.kind != "name" or self.token in _KEYWORDS:
            self.fail()
        return self.next()

    def block(self) -> Block:
        statements: list[Statement] = []
        while self.token not in {"", "end", "else", "elseif", "until"}:
            if self.takes(";"):
                continue
            with_end = self.token in {"return", "break"}
            statements += self._statement()
            if with_end:
                self.takes(";")
                break
        return tuple(statements)

    def _body(self) -> Block:
        block = self.block()
        self.expect("end")
        return block

    def _statement(self) -> Block:  # noqa: PLR0911 - one for each kind
        line = self.line
        if self.takes("if"):
            return (self._if(line),)
        if self.takes("while"):
            condition = self.expression()
            self.expect("do")
            return (Loop(line, condition, self._body()),)
        if self.takes("repeat"):
            body = self.block()
            self.expect("until")
            return (Loop(line, self.expression(), body, is_until=True),)
        if self.takes("do"):  # as a condition that holds: its locals end with it
            return (If(line, ((Constant(line, value=True), self._body()),)),)
        if self.takes("for"):
            return (self._for(line),)
        if self.takes("function"):
            return (self._named_function(line),)
        if self.takes("local"):
            return self._local(line)
        if self.takes("return"):
            values = () if self.token in {"", ";", "end", "else", "elseif", "until"} else self._expressions()
            return (Return(line, values),)
        if self.takes("break"):
            return (Break(line),)
        return (self._assignment_or_call(line),)

    def _if(self, line: int) -> If:
        branches = []
        condition = self.expression()
        self.expect("then")
        branches.append((condition, self.block()))
        while self.takes("elseif"):
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self.block()))
        if self.takes("else"):
            branches.append((Constant(line, value=True), self.block()))
        self.expect("end")
        return If(line, tuple(branches))

    def _for(self, line: int) -> For:
        names = [self.name()]
        while self.takes(","):
            names.append(self.name())
        is_in = not (len(names) == 1 and self.takes("="))
        if is_in:
            self.expect("in")
        values = self._expressions()
        if not is_in and not 2 <= len(values) <= 3:
            self.fail()
        self.expect("do")
        return For(line, tuple(names), values, self._body(), is_in)

    def _named_function(self, line: int) -> Assign:
        target: Name | Index = Name(line, self.name())
        is_method = False
        while self.token in {".", ":"}:
            is_method = self.next() == ":"
            target = Index(line, target, Constant(line, self.name()))
            if is_method:
                break
        return Assign(line, (target,), (self._function(line, ("self",) if is_method else ()),))

    def _local(self, line: int) -> Block:
        if self.takes("function"):
            name = Name(line, self.name())
            declared = Assign(line, (name,), (), is_local=True)  # the function may call itself
            return (declared, Assign(line, (name,), (self._function(line),)))
        names = [Name(line, self.name())]
        while self.takes(","):
            names.append(Name(line, self.name()))
        values = self._expressions() if self.takes("=") else ()
        return (Assign(line, tuple(names), values, is_local=True),)

    def _assignment_or_call(self, line: int) -> Statement:
        first = self._suffixed()
        if isinstance(first, LuaCall) and self.token not in {"=", ","}:
            return first
        targets = [first]
        while self.takes(","):
            targets.append(self._suffixed())
        assigned = tuple(target for target in targets if isinstance(target, Name | Index))
        if len(assigned) < len(targets):
            self.fail()
        self.expect("=")
        return Assign(line, assigned, self._expressions())

    def _expressions(self) -> tuple[Expression, ...]:
        values = [self.expression()]
        while self.takes(","):
            values.append(self.expression())
        return tuple(values)

    def expression(self, limit: int = 0) -> Expression:
        line = self.line
        left: Expression
        if self.token in {"not", "-", "#"}:
            left = Operation(line, self.next(), (self.expression(_UNARY_BINDS),))
        else:
            left = self._simple()
        while (binds := _BINDS.get(self.token)) and binds[0] > limit:
            line, operator = self.line, self.next()
            left = Operation(line, operator, (left, self.expression(binds[1])))
        return left

    def _simple(self) -> Expression:
        line = self.line
        if self.kind in {"text", "long"}:
            return Constant(line, self.next())
        if self.kind == "number":
            text = self.next()
            return Constant(line, float(int(text, 16)) if text[:2] in {"0x", "0X"} else float(text))
        if self.token in {"nil", "true", "false"}:
            return Constant(line, {"nil": None, "true": True, "false": False}[self.next()])
        if self.takes("..."):
            return Varargs(line)
        if self.takes("function"):
            return self._function(line)
        return self._table() if self.sees("{") else self._suffixed()

    def _suffixed(self) -> Expression:
        line = self.line
        value: Expression
        if self.takes("("):
            value = self.expression()
            self.expect(")")
        else:
            value = Name(line, self.name())
        while True:
            line = self.line
            if self.takes("."):
                value = Index(line, value, Constant(line, self.name()))
            elif self.takes("["):
                value = Index(line, value, self.expression())
                self.expect("]")
            elif self.takes(":"):
                value = LuaCall(line, value, self.name(), self._arguments())
            elif self.token in {"(", "{"} or self.kind in {"text", "long"}:
                value = LuaCall(line, value, "", self._arguments())
            else:
                return value

    def _arguments(self) -> tuple[Expression, ...]:
        line = self.line
        if self.kind in {"text", "long"}:
            return (Constant(line, self.next()),)
        if self.sees("{"):
            return (self._table(),)
        self.expect("(")
        values = () if self.sees(")") else self._expressions()
        self.expect(")")
        return values

    def _function(self, line: int, parameters: tuple[str, ...] = ()) -> Function:
        self.expect("(")
        while not self.sees(")"):
            parameters = (*parameters, self.next()) if self.sees("...") else (*parameters, self.name())
            if not self.takes(","):
                break
        self.expect(")")
        return Function(line, parameters, self._body())

    def _table(self) -> TableOf:
        line = self.line
        self.expect("{")
        fields: list[tuple[Expression, Expression]] = []
        position = 0
        while not self.sees("}"):
            at = self.line
            key: Expression
            if self.takes("["):
                key = self.expression()
                self.expect("]")
                self.expect("=")
            elif self.kind == "name" and self._tokens[self._at + 1][1:] == ("sign", "="):
                key = Constant(at, self.name())
                self.next()
            else:
                position += 1
                key = Constant(at, float(position))
            fields.append((key, self.expression()))
            if not self.takes(",", ";"):
                break
        self.expect("}")
        return TableOf(line, tuple(fields))


def _tokens(text: str) -> list[tuple[int, str, str]]:
    """Lines, kinds and contents; the last one is the end."""
    tokens = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise LuaError(line, f"`{text[at]}` begins nothing that Lua knows")
        written = match[0]
        kind = next(name for name in ("blank", "long", "name", "number", "text", "sign") if match[name] is not None)
        if kind == "text":
            tokens.append((line, kind, _ESCAPE.sub(partial(_escaped, line), written[1:-1])))
        elif kind == "long":
            edge = len(match["equals"]) + 2
            tokens.append((line, kind, re.sub(r"\A\r?\n", "", written[edge:-edge])))
        elif kind != "blank":
            tokens.append((line, kind, written))
        line += written.count("\n")
        at = match.end()
    tokens.append((line, "end", ""))
    return tokens


def _escaped(line: int, found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] == "z":
        return ""
    code = int(escape[1:], 16) if escape[0] == "x" and len(escape) > 1 else int(escape) if escape.isdecimal() else None
    if code is None:
        return _ESCAPES.get(escape, escape)
    if code > 127:
        raise LuaError(line, f"the byte `\\{escape}` is not ASCII; a body of bytes goes into a file: --body @FILE")
    return chr(code)
