"""A page read without a browser: its elements and their text, and the data in it."""

import json
from html.parser import HTMLParser
from typing import Any

from redline.model import Report
from redline.render import RENDERERS

VOID = {"wbr", "meta", "link", "br", "input", "img", "line", "rect", "path"}


class Page(HTMLParser):
    """Elements and their text, and whether tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]][-1] += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page(report: Report) -> Page:
    return Page(RENDERERS["html"](report).decode())


def data(parsed: Page) -> Any:
    return unpacked(parsed.raw["script"][0])


def unpacked(text: str) -> Any:
    """Read packed data as plot.js does."""
    held = json.loads(text)
    shared: list[Any] = []

    def whole(value: Any) -> Any:
        match value:
            case str() if value.startswith("#"):
                return value[1:] if value.startswith("##") else shared[int(value[1:])]
            case {"e": zeros, "v": numbers}:
                return [None if number is None else number * 10**zeros for number in numbers]
            case dict():
                return {key: whole(of) for key, of in value.items()}
            case list():
                return [whole(of) for of in value]
            case _:
                return value

    shared.extend(map(whole, held["shared"]))
    return whole(held["data"])


def section(html: str, name: str) -> Page:
    """The section with this id."""
    return Page(html.split(f'<section id="{name}"')[1].split("</section>", maxsplit=1)[0].partition(">")[2])
