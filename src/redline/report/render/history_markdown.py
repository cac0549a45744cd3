"""A history as Markdown, fit for a comment on a pull request: short, what changed first."""

from collections.abc import Iterator

from redline.analysis.history import silent
from redline.model.history import Followed, History
from redline.report import format as fmt
from redline.report.render import history_lines as lines
from redline.report.render.escaping import safe

_MOST_ROWS = 20


def render_history(history: History) -> bytes:
    """A heading, a table of changes with regressions first, and what cannot be said; escaped like a report."""
    return ("\n\n".join(_blocks(history)) + "\n").encode(errors="replace")


def _blocks(history: History) -> Iterator[str]:
    yield "## History"
    yield "\n".join(f"- {safe(line)}" for line in lines.in_words(history))
    found = lines.changed(history)
    if lines.followed(history):
        yield f"**{lines.counted(history)}.**"
    if found:
        yield "\n".join(_table(found[:_MOST_ROWS], history))
    if len(found) > _MOST_ROWS:
        yield f"And {len(found) - _MOST_ROWS} more."
    unsaid = [f"{safe(one.slug)}, {fmt.label(one.metric)}: {safe(lines.last_told(one))}" for one in silent(history)]
    if unsaid:
        yield "\n".join(["The last run says nothing of:\n", *(f"- {line}" for line in unsaid)])
    alone = lines.alone(history)
    if alone and len(history.runs) > 1:
        yield f"Not followed, since one run alone has them: {len(alone)} {'cell' if len(alone) == 1 else 'cells'}."
    if history.left_out:
        yield "\n".join(["Left out:\n", *(f"- {safe(one.folder)}: {safe(one.reason)}" for one in history.left_out)])


def _table(cells: tuple[Followed, ...], history: History) -> Iterator[str]:
    yield "| cell | metric | change | since | now |"
    yield "|---|---|---|---|---:|"
    for one in cells:
        change = lines.main_change(one)
        role = " (ceiling)" if one.role == "ceiling" else ""
        when = "<br>".join(safe(part) for part in (lines.since(change, history), *lines.beside(change, history)))
        row = (
            f"**{safe(one.slug)}**{role}",
            fmt.label(one.metric),
            safe(lines.sign_of(change)),
            when,
            safe(lines.last_told(one)),
        )
        yield f"| {' | '.join(row)} |"
