"""The renderers by the names of their formats: the built-in ones, and those of installed packages.

A package brings a renderer by an entry point of the group `redline.renderers`: docs/guide/own-formats.md.
"""

from redline.errors import RedlineError
from redline.model.limits import AnyReport
from redline.plugins.entry_points import Extension, extension
from redline.ports import Renderer
from redline.report.render import RENDERERS

GROUP = "redline.renderers"
PAGE = "docs/guide/own-formats.md"


def renderer_of(form: str, beside: tuple[str, ...] = ()) -> Renderer:
    """The renderer of a format, a built-in one first. Raises UsageError for a format that nobody brings, or several.

    A renderer of a package raises RedlineError where it fails, with the place in its code. `beside` are further names
    that the caller knows.
    """
    if form in RENDERERS:
        return RENDERERS[form]
    found = extension(GROUP, form, "format", PAGE, (*RENDERERS, *beside))
    return lambda report: _rendered(found, report)


def _rendered(renderer: Extension, report: AnyReport) -> bytes:
    """What a renderer of a package makes of a report. Raises RedlineError."""
    try:
        content = renderer.point.load()(report)
    except RedlineError:
        raise
    except Exception as error:
        raise RedlineError(f"{renderer} failed: {renderer.reason(error)}", hint=renderer.hint) from error
    if not isinstance(content, bytes):
        message = f"{renderer} gave no text: it is {type(content).__name__}, not bytes"
        raise RedlineError(message, hint=renderer.hint)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise RedlineError(f"{renderer} gave no text: {error}", hint=renderer.hint) from None
    return content
