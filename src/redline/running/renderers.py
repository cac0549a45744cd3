"""The renderers by the names of their formats: the built-in ones, and those of installed packages.

A package brings a renderer by an entry point of the group `redline.renderers`: docs/guide/own-formats.md.
"""

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb

from redline.errors import RedlineError, UsageError
from redline.model.limits import AnyReport
from redline.ports import Renderer
from redline.quantities import did_you_mean
from redline.report.render import RENDERERS

GROUP = "redline.renderers"


def renderer_of(form: str, beside: tuple[str, ...] = ()) -> Renderer:
    """The renderer of a format, a built-in one first. Raises UsageError for a format that nobody brings, or several.

    A renderer of a package raises RedlineError where it fails, with the place in its code. `beside` are further names
    that the caller knows.
    """
    if form in RENDERERS:
        return RENDERERS[form]
    foreign = entry_points(group=GROUP)
    points = {point.value: point for point in foreign if point.name == form}
    if not points:
        known = (*RENDERERS, *beside, *sorted(foreign.names))
        raise UsageError(
            f"there is no format {form}", hint=did_you_mean(form, known) or f"use one of {', '.join(known)}"
        )
    point, *others = points.values()
    if others:
        names = ", ".join(map(_package_of, points.values()))
        raise UsageError(f"several packages bring a format {form}: {names}", hint="uninstall all of them but one")
    return lambda report: _rendered(point, report)


def _package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _rendered(point: EntryPoint, report: AnyReport) -> bytes:
    """What a renderer of a package makes of a report. Raises RedlineError."""
    package = _package_of(point)
    hint = f"tell the authors of {package}, or correct it: docs/guide/own-formats.md"
    try:
        content = point.load()(report)
    except RedlineError:
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        own = [frame for frame in frames if point.module.replace(".", "/") in frame.filename]
        where = (own or frames)[-1]
        message = f"the format {point.name} of {package} failed: {type(error).__name__}: {error}"
        raise RedlineError(f"{message} ({Path(where.filename).name}:{where.lineno})", hint=hint) from error
    if not isinstance(content, bytes):
        message = f"the format {point.name} of {package} gave no text: it is {type(content).__name__}, not bytes"
        raise RedlineError(message, hint=hint)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise RedlineError(f"the format {point.name} of {package} gave no text: {error}", hint=hint) from None
    return content
