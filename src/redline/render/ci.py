"""Outcomes of a report in the forms of CI servers: JUnit XML, and workflow commands of GitHub Actions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from redline.report.outcomes import Outcome, State
from redline.visible import visible

_ELEMENTS: dict[State, str] = {"failed": "failure", "unknown": "error", "undecided": "skipped"}
"""Undecided checks are skipped, and fail nothing."""
_COUNTS: dict[State, str] = {"failed": "failures", "unknown": "errors", "undecided": "skipped"}
_ORDER: dict[State, tuple[int, str]] = {
    "failed": (0, "warning"),
    "unknown": (1, "warning"),
    "undecided": (2, "notice"),
    "passed": (3, "notice"),
}
"""The worst state first, because GitHub shows ten of a kind. Warnings only, since the exit code says what fails."""
_IN_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_TITLE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def junit(name: str, outcomes: Sequence[Outcome]) -> bytes:
    """JUnit XML, which CI servers show beside a change: a suite of that name, with a test case for every outcome.

    Names of test cases differ, since GitLab shows only the first of equal names.
    """
    states = Counter(outcome.state for outcome in outcomes)
    numbers = {"tests": str(len(outcomes))} | {name: str(states[state]) for state, name in _COUNTS.items()}
    suites = ET.Element("testsuites", {"name": "redline"} | numbers)
    suite = ET.SubElement(suites, "testsuite", {"name": visible(name)} | numbers)
    seen = Counter[tuple[str, str]]()
    for outcome in outcomes:
        seen[outcome[:2]] += 1
        again = f" ({seen[outcome[:2]]})" if seen[outcome[:2]] > 1 else ""
        case = ET.SubElement(
            suite, "testcase", classname=visible(outcome.subject), name=f"{visible(outcome.name)}{again}"
        )
        said = visible(outcome.text)
        if element := _ELEMENTS.get(outcome.state):
            ET.SubElement(case, element, message=said, type=outcome.state).text = said
        else:
            ET.SubElement(case, "system-out").text = said
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def annotations(outcomes: Iterable[Outcome]) -> bytes:
    """A line for each outcome, which GitHub shows as a notice or a warning beside the change."""
    lines = []
    for outcome in sorted(outcomes, key=lambda outcome: _ORDER[outcome.state][0]):
        title = visible(f"{outcome.subject}, {outcome.name}").translate(_IN_TITLE)
        lines.append(f"::{_ORDER[outcome.state][1]} title={title}::{visible(outcome.text).translate(_IN_TEXT)}\n")
    return "".join(lines).encode()
