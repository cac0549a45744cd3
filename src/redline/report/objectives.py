"""The result of an objective in a line."""

from redline.document import format as fmt
from redline.document.blocks import STATE_LOOKS, Line, Look, line
from redline.model import ObjectiveResult, ObjectiveState


def objective_line(result: ObjectiveResult) -> Line:
    """`✓ p99 435 µs < 50 ms`, `✗ p99 78.0 ms, not < 50 ms`, or `? p99 < 50 ms is not known to be met: …`."""
    metric, bound = result.objective.metric, fmt.bound(result.objective)
    sign = mark(result.state)
    match result.state:
        case "met":
            return line(sign, f"{metric} {fmt.actual(result)} {bound}")
        case "missed" if result.reason:
            return line(sign, f"{metric} {bound} is missed: {result.reason}")
        case "missed":
            return line(sign, f"{metric} {fmt.actual(result)}, not {bound}")
        case _:
            return line(sign, f"{metric} {bound} is not known to be met: {result.reason}")


def mark(state: ObjectiveState) -> tuple[str, Look]:
    """`✓ `, `✗ `, or `? ` for an unknown state."""
    return f"{fmt.STATE_MARKS[state]} ", STATE_LOOKS[state]
