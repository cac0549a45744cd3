"""What statements of Lua could change, if they were executed. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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

Node = Statement | Expression


@dataclass(frozen=True)
class LuaEffect:
    """A variable or a field that is assigned, or a function that is called."""

    line: int
    target: Name | Index | None = None
    call: LuaCall | None = None


def nodes(parts: Iterable[Node]) -> Iterator[Node]:
    """All statements and expressions, those inside functions too."""
    for part in parts:
        yield part
        yield from nodes(_inside(part))


def effects(block: Iterable[Node]) -> Iterator[LuaEffect]:
    """What these statements, and functions in them, assign and call. Declaring a local changes nothing."""
    for node in nodes(block):
        if isinstance(node, LuaCall):
            yield LuaEffect(node.line, call=node)
        elif isinstance(node, Assign) and not node.is_local:
            for target in node.targets:
                yield LuaEffect(node.line, target)


def local_names(block: Block) -> set[str]:
    """Names that statements declare: locals, parameters, variables of loops."""
    found: set[str] = set()
    for node in nodes(block):
        if isinstance(node, Assign) and node.is_local:
            found |= {target.name for target in node.targets if isinstance(target, Name)}
        elif isinstance(node, Function):
            found |= {*node.parameters}
        elif isinstance(node, For):
            found |= {*node.names}
    return found


def may_leave(block: Block) -> bool:
    """Whether statements may end the function or the loop around them."""
    return any(
        isinstance(part, Return | Break)
        or (isinstance(part, If) and any(may_leave(inner) for _, inner in part.branches))
        or (isinstance(part, Loop | For) and may_leave(part.body))
        for part in block
    )


def _inside(node: Node) -> Iterable[Node]:  # noqa: C901, PLR0911 - one for each kind
    match node:
        case Index(table=table, key=key):
            return (table, key)
        case LuaCall(function=function, arguments=arguments):
            return (function, *arguments)
        case Function(body=body):
            return body
        case Operation(operands=operands):
            return operands
        case TableOf(fields=fields):
            return (part for pair in fields for part in pair)
        case Assign(targets=targets, values=values):
            return (*targets, *values)
        case If(branches=branches):
            return (part for condition, inner in branches for part in (condition, *inner))
        case Loop(condition=condition, body=body):
            return (condition, *body)
        case For(values=values, body=body):
            return (*values, *body)
        case Return(values=values):
            return values
        case Constant() | Name() | Varargs() | Break():
            return ()
