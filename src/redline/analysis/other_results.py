"""Arrange results of other tools in comparable lines, unjudged. Pure."""

from collections.abc import Iterable
from pathlib import PurePath

from redline.model.history import OtherLine, OtherResult


def lines_of(results: Iterable[OtherResult]) -> tuple[OtherLine, ...]:
    """A line for every tool, URL and load, in the order of the files.

    Files without a URL count as the same URL if they are in the same folder. A line is in the order of time if all of
    its results have a time.
    """
    by_line: dict[tuple[str, str, str, str], list[OtherResult]] = {}
    for result in results:
        folder = "" if result.url else str(PurePath(result.file).parent)
        by_line.setdefault((result.tool, result.url, result.load, folder), []).append(result)
    return tuple(_line(*names, own) for names, own in by_line.items())


def _line(tool: str, url: str, load: str, folder: str, results: list[OtherResult]) -> OtherLine:
    dated = all(result.started_unix_ns is not None for result in results)
    ordered = sorted(results, key=lambda result: result.started_unix_ns or 0) if dated else results
    return OtherLine(tool=tool, url=url, load=load, folder=folder, results=tuple(ordered), dated=dated)
