"""The tools: `list`, `load`, `ab`, `limit` and `explain`, by the official SDK of the Model Context Protocol."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from redline import api, defaults
from redline.cli.commands.list import list_result
from redline.cli.contracts import ListResult
from redline.errors import RedlineError
from redline.extras.mcp.answers import ToolAnswer, answer_of, stored_result
from redline.version import VERSION

_INSTRUCTIONS = """\
Redline measures HTTP servers. A server is the URL of one that runs, or the command that starts it, with {port} for its
port, such as './shop --port {port}'; without any, redline.yaml of the current folder names it. Load only servers that
are the user's own. Times are texts such as '10s', objectives such as 'p99 < 50ms, errors < 0.1%'. Every answer has its
doubt: repeat it beside the numbers, and call nothing faster or slower that is inconclusive. Measurements take the time
that they are given, and one runs at a time, since two would change each other's numbers.
"""
_READS = ToolAnnotations(read_only_hint=True)
_MEASURES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)
R = TypeVar("R")


def served() -> MCPServer:
    """A server with the tools."""
    server: MCPServer = MCPServer("redline", version=VERSION, instructions=_INSTRUCTIONS)
    one_at_a_time = anyio.Lock()

    async def measured(call: Callable[[], Any]) -> ToolAnswer:
        async with one_at_a_time:
            return answer_of(await _in_thread(call))

    @server.tool("list", annotations=_READS)
    async def list_servers(names: list[str] | None = None) -> ListResult:
        """List servers of redline.yaml and of the catalogue, and suites. `names`: only these, such as 'http4s.*'."""
        return await _in_thread(partial(list_result, names))

    @server.tool(annotations=_MEASURES)
    async def load(  # noqa: PLR0913, PLR0917 - its client names them
        server: str | None = None,
        path: str | None = None,
        users: int | None = None,
        rate: float | None = None,
        duration: str = defaults.LOAD_LENGTH,
        objective: list[str] | None = None,
        keep: str | None = None,
    ) -> ToolAnswer:
        """Load a server: with `users` who wait for answers, or at a `rate` of requests per second; give one.

        `path`: what a command is asked for. `keep`: a folder for the recording and its report.
        """
        asked: dict[str, Any] = {"path": path, "users": users, "rate": rate, "duration": duration, "keep": keep}
        return await measured(partial(api.load, server, objective=objective or (), progress=True, **asked))

    @server.tool(annotations=_MEASURES)
    async def ab(  # noqa: PLR0913, PLR0917 - its client names them
        a: str | None = None,
        b: str | None = None,
        git: str | None = None,
        path: str | None = None,
        users: int | None = None,
        rate: float | None = None,
        budget: str | None = None,
        metric: defaults.DuetMetric = "cpu",
        keep: str | None = None,
    ) -> ToolAnswer:
        """Is B slower than A? Both are alive at once and loaded in turn, for `budget` in all.

        By default that is a minute for each request and load, 20 at most.
        `a` and `b` are commands or URLs; `git`: two revisions in their place, 'main..HEAD', built by redline.yaml.
        """
        asked: dict[str, Any] = {"git": git, "path": path, "users": users, "rate": rate, "budget": budget, "keep": keep}
        return await measured(partial(api.ab, a, b, metric=metric, progress=True, **asked))

    @server.tool(annotations=_MEASURES)
    async def limit(
        objective: list[str],
        targets: list[str] | None = None,
        path: str | None = None,
        budget: str | None = None,
        keep: str | None = None,
    ) -> ToolAnswer:
        """Find the highest rate at which servers meet an `objective`, as an interval; `budget`: about the most time."""
        asked: dict[str, Any] = {"objective": objective, "path": path, "budget": budget, "keep": keep}
        return await measured(partial(api.limit, *(targets or ()), progress=True, **asked))

    @server.tool(annotations=_READS)
    async def explain(result: str) -> ToolAnswer:
        """Explain a stored result: the folder that a measurement was kept in, or its results.json."""
        return answer_of(await _in_thread(partial(stored_result, Path(result))))

    return server


async def _in_thread(call: Callable[[], R]) -> R:
    """Call it in a thread, since it blocks. What a user can mend is the answer of the tool, with its hints."""
    try:
        return await anyio.to_thread.run_sync(call)
    except RedlineError as error:
        raise ToolError("\n".join(map(str, error.problems))) from error
