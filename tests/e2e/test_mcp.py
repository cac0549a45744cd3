"""An assistant that measures: the client of the SDK, `redline mcp`, and real servers."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.e2e.conftest import REDLINE
from tests.fakes import targets

pytestmark = pytest.mark.e2e


@pytest.mark.long
def test_an_assistant_loads_compares_searches_and_explains(tmp_path: Path, oracle: Path) -> None:
    quick = f"{oracle} fixed --delay 10ms --port {{port}}"
    with (
        targets.target(targets.healthy) as url,
        targets.target(targets.healthy) as other,
        (tmp_path / "stderr").open("w+") as progress,
    ):
        calls: list[tuple[str, dict[str, Any]]] = [
            ("load", {"server": url, "users": 2, "duration": "1s", "keep": "kept"}),
            ("explain", {"result": "kept"}),
            ("ab", {"a": url, "b": other, "users": 4, "metric": "p50", "budget": "4s"}),
            ("limit", {"targets": [quick], "objective": ["p99 < 15ms"], "budget": "25s"}),
        ]

        async def answers() -> list[Any]:
            server = StdioServerParameters(command=str(REDLINE), args=["mcp"], cwd=tmp_path)
            async with Client(stdio_client(server, errlog=progress), read_timeout_seconds=240) as client:
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        results = anyio.run(answers)
        progress.seek(0)
        shown = progress.read()
    for result in results:
        assert not result.is_error, result.content
        assert result.structured_content["answer"]
        assert result.structured_content["doubt"]
    loaded, explained, compared, searched = (result.structured_content for result in results)
    assert loaded["kept"] == explained["kept"] == str(tmp_path / "kept")
    assert explained["doubts"] == loaded["doubts"]
    assert "p50" in compared["text"]
    assert "p99 < 15ms" in searched["text"]
    assert "start 1" in shown or "probe" in shown, "progress goes to stderr"
