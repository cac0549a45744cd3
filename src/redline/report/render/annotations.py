"""The report as workflow commands of GitHub Actions, which shows them as notices or warnings beside the change."""

from collections.abc import Iterable

from redline.report.outcomes import Outcome, State
from redline.visible import visible

_ORDER: dict[State, tuple[int, str]] = {
    "failed": (0, "warning"),
    "unknown": (1, "warning"),
    "undecided": (2, "notice"),
    "passed": (3, "notice"),
}
"""The worst state first, because GitHub shows ten of a kind. Warnings only, since the exit code says what fails."""
_IN_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_TITLE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(outcomes: Iterable[Outcome]) -> bytes:
    """A line for each outcome."""
    lines = []
    for outcome in sorted(outcomes, key=lambda outcome: _ORDER[outcome.state][0]):
        title = visible(f"{outcome.subject}, {outcome.name}").translate(_IN_TITLE)
        lines.append(f"::{_ORDER[outcome.state][1]} title={title}::{visible(outcome.text).translate(_IN_TEXT)}\n")
    return "".join(lines).encode()
