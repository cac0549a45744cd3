"""The report as JUnit XML, which CI servers show beside a change: a test case for every check of `outcomes`."""

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from redline.report.outcomes import Outcome, State
from redline.visible import visible

_ELEMENTS: dict[State, str] = {"failed": "failure", "unknown": "error", "undecided": "skipped"}
"""Undecided checks are skipped, and fail nothing."""
_COUNTS: dict[State, str] = {"failed": "failures", "unknown": "errors", "undecided": "skipped"}


def render(name: str, outcomes: Sequence[Outcome]) -> bytes:
    """A single suite of that name. Names of test cases differ, since GitLab shows only the first of equal names."""
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
