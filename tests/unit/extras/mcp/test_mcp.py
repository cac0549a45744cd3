"""The tools of `redline mcp`, by the client of the SDK over stdin and stdout of the command."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from redline.analysis import build_report
from redline.api.results import RunResult, SearchResult
from redline.extras.mcp.answers import NO_DOUBT, answer_of
from tests.fakes import limits, reports
from tests.fakes.compared import Cost, compared_run
from tests.fakes.stored import kept

MAIN = "import sys; sys.argv[0] = 'redline'; from redline.cli.main import main; main()"


def called(*calls: tuple[str, dict[str, Any]], cwd: Path) -> list[Any]:
    """The results of tools that are called in turn, in a server of its own."""

    async def all_of_them() -> list[Any]:
        server = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp"], cwd=cwd)
        async with Client(server, read_timeout_seconds=120) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(all_of_them)


def test_the_tools_are_those_that_are_documented(tmp_path: Path) -> None:
    async def names() -> dict[str, Any]:
        server = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp"], cwd=tmp_path)
        async with Client(server, read_timeout_seconds=120) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = anyio.run(names)
    assert set(tools) == {"list", "load", "ab", "limit", "explain"}
    assert all(tool.description for tool in tools.values())
    assert tools["limit"].input_schema["required"] == ["objective"]
    for name in ("load", "ab", "limit", "explain"):
        assert {"answer", "doubt", "doubts"} <= set(tools[name].output_schema["required"])


def test_a_stored_result_is_explained_and_what_cannot_be_done_says_why(tmp_path: Path) -> None:
    folder = kept(tmp_path / "run", compared_run({"home": Cost(1.2)})).folder
    explained, missing, refused, listed = called(
        ("explain", {"result": str(folder)}),
        ("explain", {"result": str(tmp_path / "none")}),
        ("load", {"server": "http://192.0.2.1/", "duration": "1s"}),
        ("list", {"names": ["rust.hyper"]}),
        cwd=tmp_path,
    )
    answer = explained.structured_content
    assert "20% more CPU per request" in answer["answer"][0]
    assert answer["doubt"] == NO_DOUBT
    assert answer["kept"] == str(folder)
    assert missing.is_error
    assert "hint: " in missing.content[0].text
    assert refused.is_error
    assert "192.0.2.1" in refused.content[0].text
    assert [server["name"] for server in listed.structured_content["servers"]] == ["rust.hyper"]


@pytest.mark.parametrize("result", [RunResult(reports.doubtful(), None), SearchResult(limits.alone(), None)])
def test_every_answer_has_its_doubt(result: RunResult | SearchResult) -> None:
    made = answer_of(result)
    assert made.answer
    assert [(doubt.grade, doubt.message) for doubt in made.doubts] == [
        (finding.grade.value, finding.message) for finding in result.findings
    ]
    assert made.doubt == NO_DOUBT if not made.doubts else f"{made.doubts[0].grade}" in made.doubt
    assert made.text == str(result)


def test_a_doubtful_result_counts_its_doubts() -> None:
    made = answer_of(RunResult(reports.doubtful(), None))
    assert made.doubts[0].grade == "invalid"
    assert made.doubt.startswith("reasons to doubt these numbers: ")
    assert sum(int(word) for word in made.doubt.replace(",", "").split() if word.isdecimal()) == len(made.doubts)
    assert answer_of(RunResult(build_report(compared_run({"home": Cost(1.0)})), None)).doubt == NO_DOUBT
