"""Notices a run in which every truth test was skipped: it shows nothing about the engine's times."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from bench.cost.place import BUSY_SHARE, Use


@dataclass
class SkippedTruth:
    """A pytest plugin. A truth test skips where its noise bounds are too wide, and noise needs a cause.

    When all of them skip, the run's last lines say so. When moreover the machine was quiet, by the share of CPU time
    that other processes and the hypervisor took, the run fails: then the engine or the oracle made the noise.
    """

    now: Callable[[], Use] = Use.now
    outcomes: Counter[str] = field(default_factory=Counter)
    before: Use = field(init=False)
    message: str = ""

    def __post_init__(self) -> None:
        self.before = self.now()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count how each truth test ended; a skip is reported in its setup or its call."""
        if "truth" in report.keywords and (report.when == "call" or report.skipped or report.failed):
            self.outcomes[report.outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail where all were skipped on a quiet machine."""
        if set(self.outcomes) != {"skipped"}:
            return
        others, stolen = self.now().others_since(self.before)
        self.message = (
            f"all {self.outcomes['skipped']} truth tests were skipped: this run shows nothing about the engine's times"
            f" (other processes used {others:.0%} of the CPU time, the hypervisor took {stolen:.0%})"
        )
        if others + stolen <= BUSY_SHARE:
            self.message += "; on a machine as quiet as this one that is a failure"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The last lines."""
        if self.message:
            terminalreporter.write_line(self.message, red=True, bold=True)
