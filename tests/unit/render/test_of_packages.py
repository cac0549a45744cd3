"""Formats that packages bring: which of them is meant."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from redline.errors import UsageError
from redline.running import formats
from tests.fakes import reports


def of_packages(monkeypatch: pytest.MonkeyPatch, **brought: str) -> None:
    """Let packages bring these formats, by the names of their functions."""
    points = EntryPoints(
        EntryPoint(name.rstrip("_"), f"{__name__}:{value}", formats.GROUP) for name, value in brought.items()
    )
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: points.select(group=group))


def short(_report: object) -> bytes:
    return b"short"


def test_a_format_is_that_of_the_only_package_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_packages(monkeypatch, brief="short", brief_="short", other="none")
    assert formats.renderer_of("brief")(reports.alone()) == b"short"
    with pytest.raises(UsageError, match="there is no format breif") as refused:
        formats.renderer_of("breif")
    assert refused.value.hint == "did you mean `brief`?"


def test_a_format_of_two_packages_is_refused_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    of_packages(monkeypatch, brief="short", brief_="other")
    with pytest.raises(UsageError, match=r"several packages bring a format brief: .*:short, .*:other"):
        formats.renderer_of("brief")
