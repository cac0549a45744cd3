"""Detects a run that skipped every upper bound of the truth tests: the engine may then be too slow unnoticed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from bench.cost.place import BUSY_SHARE, Use


@dataclass(eq=False)
class SkippedTruth:
    """A pytest plugin. Truth tests that bound a time from above allow for noise, and skip if there is too much.

    If all of these skip, the last lines of the run report it. If the machine was also quiet, judged by the share of CPU
    time that other processes and the hypervisor took, the run fails: the engine or the oracle made the noise.
    """

    now: Callable[[], Use] = Use.now
    outcomes: Counter[str] = field(default_factory=Counter)
    before: Use = field(init=False)
    message: str = ""

    def __post_init__(self) -> None:
        self.before = self.now()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the result of every upper bound; a skip is reported in its setup or its call."""
        if "upper_bound" in report.keywords and (report.when == "call" or report.skipped or report.failed):
            self.outcomes[report.outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail if all were skipped on a quiet machine."""
        if set(self.outcomes) != {"skipped"}:
            return
        others, stolen = self.now().others_since(self.before)
        self.message = (
            f"all {self.outcomes['skipped']} truth tests with an upper bound were skipped:"
            " the engine may report times that are too long"
            f" (other processes used {others:.0%} of the CPU time, the hypervisor took {stolen:.0%})"
        )
        if others + stolen <= BUSY_SHARE:
            self.message += "; on a machine as quiet as this one that is a failure"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Report it below pytest's own summary."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if self.message and reporter is not None:
            reporter.write_line(self.message, red=True, bold=True)
