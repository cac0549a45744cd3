"""A run whose truth tests were all skipped reports it, and fails if the machine was quiet."""

from pathlib import Path

import pytest

CONFTEST = """
import pytest
from bench.cost.place import Use
from tests.e2e.skipped_truth import SkippedTruth

def pytest_configure(config):
    uses = iter([Use(0.0, 0.0, 0.0, 0.0, 2), Use({others}, {stolen}, 0.0, 10.0, 2)])
    config.addinivalue_line("markers", "upper_bound: ")
    config.pluginmanager.register(SkippedTruth(lambda: next(uses)))
"""
SKIPPED = """
import pytest

@pytest.fixture
def noisy():
    pytest.skip("too noisy")

@pytest.mark.upper_bound
def test_skipped_in_its_setup(noisy): pass

@pytest.mark.upper_bound
def test_skipped_in_its_call(): pytest.skip("too noisy")

def test_of_another_kind(): pass
"""
JUDGED = (
    SKIPPED
    + """
@pytest.mark.upper_bound
def test_judged(): pass
"""
)

pytest_plugins = ["pytester"]


def ended(pytester: pytest.Pytester, text: str, *, others: float = 0.0, stolen: float = 0.0) -> tuple[int, str]:
    """The exit code and the output of a run in which others used this many of 20 seconds of two cores."""
    pytester.makeconftest(CONFTEST.format(others=others, stolen=stolen))
    pytester.makepyfile(text)
    pytester.syspathinsert(Path(__file__).parents[3])
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    return int(result.ret), result.stdout.str()


def test_all_skipped_on_a_quiet_machine_is_a_failure(pytester: pytest.Pytester) -> None:
    code, output = ended(pytester, SKIPPED, others=0.4, stolen=0.4)
    assert code == 1
    assert "all 2 truth tests with an upper bound were skipped" in output
    assert "is a failure" in output


@pytest.mark.parametrize(("others", "stolen"), [(4.0, 0.0), (0.0, 4.0)])
def test_all_skipped_on_a_busy_machine_is_reported(pytester: pytest.Pytester, others: float, stolen: float) -> None:
    code, output = ended(pytester, SKIPPED, others=others, stolen=stolen)
    assert code == 0
    assert "all 2 truth tests with an upper bound were skipped" in output
    assert "20%" in output
    assert "is a failure" not in output


@pytest.mark.parametrize("text", [JUDGED, "def test_of_another_kind(): pass"])
def test_where_one_was_judged_or_none_was_to_be_nothing_is_reported(pytester: pytest.Pytester, text: str) -> None:
    code, output = ended(pytester, text)
    assert code == 0
    assert "truth tests" not in output
