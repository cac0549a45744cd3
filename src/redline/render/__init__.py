"""Reports -> bytes: the built-in renderers by format name, and the summary on a terminal."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.render.renderers import RENDERERS, SIDES, brief, history_page, page, summary
    from redline.render.terminal import render as as_text
else:
    __getattr__ = offered(__name__)
