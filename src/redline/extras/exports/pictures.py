"""Pictures of SVG as PNG, by resvg, which reads no other file, asks nothing of the network and needs no display.

It is an extra: `redline[png]`. Fonts are those of the system; without any, resvg draws no text and says nothing.
"""

from collections.abc import Callable

from redline.errors import UsageError

_ZOOM = 2
"""Pixels for each unit of the SVG: sharp on dense screens and in print."""
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
_TEXT = '<text x="1" y="16" font-family="system-ui, sans-serif" font-size="16">M</text>'
_FAMILIES = ("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans", "Noto Sans", "Cantarell", "Ubuntu", "FreeSans")
"""What `sans-serif` may be on this machine: resvg takes Arial, and draws nothing where that is not installed."""


def png_maker() -> Callable[[bytes], bytes]:
    """The function that makes a PNG of an SVG. Raises UsageError where resvg or any font is missing."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError(
            "the format png needs the package resvg-py, which is not installed",
            hint="install resvg-py where Redline is; in a checkout: uv sync --extra png; or take the format svg",
        ) from None
    nothing = svg_to_bytes(svg_string=_PROBE.format(""))
    drawn = (
        name for name in _FAMILIES if svg_to_bytes(svg_string=_PROBE.format(_TEXT), sans_serif_family=name) != nothing
    )
    family = next(drawn, None)
    if family is None:
        raise UsageError(
            "the format png found no font on this machine, and would leave out all texts",
            hint="install a font: apt install fonts-dejavu-core; or take the format svg",
        )
    return lambda content: bytes(svg_to_bytes(svg_string=content.decode(), zoom=_ZOOM, sans_serif_family=family))
