"""The pytest plugin: a fixture `redline` that measures servers in tests, and shows the report of a test that fails.

pytest imports it in every project that has Redline installed, so it imports nothing of Redline before a test asks.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from redline.api.results import RunResult, SearchResult
    from redline.api.serving import ServedCommand

__tracebackhide__ = True  # a test that fails shows its own lines, and not these
_FOLDER = "--redline-html"
_LONGEST = 120
"""Characters of a test's name in that of a file, which may have 255 bytes."""
T = TypeVar("T")
Result = TypeVar("Result", bound="RunResult | SearchResult")


class RedlineFixture:
    """What a test measures with. Its servers end with the test, and its reports are shown if the test fails."""

    def __init__(self, item: pytest.Item, folder: Path | None, stack: ExitStack) -> None:
        self._item, self._folder, self._stack = item, folder, stack
        self._measured = 0

    def server(self, command: str, *, path: str = "/", **keys: Any) -> "ServedCommand":
        """Start a command for the rest of the test, as `redline.serve`; `url` of what it gives is where it answers."""
        from redline import serve  # noqa: PLC0415 - see above

        return _without_trace(lambda: self._stack.enter_context(serve(command, path=path, **keys)))

    def load(self, server: "str | ServedCommand | None" = None, **given: Any) -> "RunResult":
        """Load a server, as `redline.load`."""
        from redline import load  # noqa: PLC0415 - see above

        return self._reported("load", lambda: load(None if server is None else str(server), **given))

    def ab(self, *servers: "str | ServedCommand", **given: Any) -> "RunResult":
        """Compare two servers, as `redline.ab`."""
        from redline import ab  # noqa: PLC0415 - see above

        return self._reported("ab", lambda: ab(*map(str, servers), **given))

    def limit(self, *servers: "str | ServedCommand", **given: Any) -> "SearchResult":
        """Find the highest rate that meets an objective, as `redline.limit`."""
        from redline import limit  # noqa: PLC0415 - see above

        return self._reported("limit", lambda: limit(*map(str, servers), **given))

    def run(self, suite: Any = None, **given: Any) -> "RunResult":
        """Run a suite, as `redline.run`."""
        from redline import run  # noqa: PLC0415 - see above

        return self._reported("run", lambda: run(suite, **given))

    def _reported(self, name: str, measure: "Callable[[], Result]") -> "Result":
        """The result, which pytest shows if the test fails, and whose page is kept where that is asked for."""
        result = _without_trace(measure)
        self._measured += 1
        self._item.add_report_section("call", f"redline {name}", str(result))
        if self._folder is not None:
            node = self._item.nodeid
            test = re.sub(r"[^\w.-]+", "-", node).strip("-")[-_LONGEST:]
            if re.sub(r"::|/", "-", node) != test:  # another test may have the same name without these characters
                test += f"-{sha256(node.encode()).hexdigest()[:8]}"
            self._folder.mkdir(parents=True, exist_ok=True)
            result.save(self._folder / f"{test}-{self._measured}-{name}.html")
        return result


def _without_trace(call: Callable[[], T]) -> T:
    """What a call returns. An error of Redline says what is wrong, and not where in Redline it was seen."""
    from redline.errors import RedlineError  # noqa: PLC0415 - see above

    try:
        return call()
    except RedlineError as error:
        raise error.with_traceback(None) from None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("redline", "measuring HTTP servers")
    group.addoption(_FOLDER, type=Path, metavar="DIR", help="keep a page there for each measurement of the tests")


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker, by which these tests are selected or left out."""
    config.addinivalue_line("markers", "redline: measures a server; added to every test that uses the fixture redline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that measure, so that `-m 'not redline'` leaves them out."""
    for item in items:
        if _fixture_is_ours(item):
            item.add_marker("redline")


def _fixture_is_ours(item: pytest.Item) -> bool:
    """Whether the test uses our fixture, and not another of that name."""
    known = getattr(item, "_fixtureinfo", None)
    definitions: Any = known.name2fixturedefs.get("redline") if known is not None else None
    return bool(definitions) and getattr(definitions[-1].func, "__module__", "") == __name__


@pytest.fixture
def redline(request: pytest.FixtureRequest) -> Iterator[RedlineFixture]:
    """Measure a server: `redline.load(url, rate=500).p99 < "20ms"`. Skips the test where there is no engine."""
    from redline.driving.engine_process import find_engine  # noqa: PLC0415 - see above
    from redline.errors import DriveError  # noqa: PLC0415 - see above

    try:
        find_engine()
    except DriveError as error:
        pytest.skip(f"{error.message}: {error.hint}")
    with ExitStack() as stack:
        folder = request.config.getoption(_FOLDER)  # as seen from where pytest began, wherever a test goes
        yield RedlineFixture(request.node, folder and request.config.invocation_params.dir / folder, stack)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say a comparison with a measured value in its words."""
    if "redline.api.amounts" not in sys.modules:
        return None
    from redline.api.amounts import Amount  # noqa: PLC0415 - it was imported

    if isinstance(left, Amount):
        return [f"{left.name} {left}, not {op} {right}"]
    if isinstance(right, Amount):
        return [f"{right.name} {right}: {left} is not {op} that"]
    return None
