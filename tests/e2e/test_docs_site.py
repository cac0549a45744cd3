"""The documentation as a site: every link arrives, nothing is fetched from another host, and it is searchable."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from redline.cli import manual
from tests.e2e.browsing import CHROMIUM, browser  # noqa: F401 - a fixture
from tests.e2e.conftest import CHECKOUT

pytestmark = [pytest.mark.e2e, pytest.mark.browser]


def built(source: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    """What the command of `make docs` does."""
    line = (CHECKOUT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\t")[2].partition("\t@")[0]
    words = line.replace("\\\n", "").replace(".cache/docs", str(out)).replace(".cache/doctrees", f"{out}-read").split()
    words[0] = str(CHECKOUT / words[0])
    return subprocess.run(words, cwd=source, capture_output=True, text=True, check=False, timeout=240)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    done = built(CHECKOUT, out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:  # noqa: F811
    page = browser.new_page()
    said, asked = list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_no_file_of_the_site_loads_anything_from_a_host(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|link|iframe)[^>]*\b(?:src|href)=["'](?:https?:)?//|(?:url\(|@import)\W*https?:"""
    )
    files = [file for file in site.rglob("*") if file.suffix in {".html", ".css"}]
    assert len(files) > 80
    assert [file.name for file in files if loads.search(file.read_text())] == []


def test_what_is_made_from_code_stands_below_what_is_written(site: Path) -> None:
    commands = (site / "docs/reference/commands.html").read_text()
    for name in (name for name, flags in manual.flags().items() if flags):
        assert f'id="flags-of-redline-{name}"' in commands
    python = (site / "docs/guide/python.html").read_text()
    for name in ("redline.ab", "redline.Suite", "redline.api.RunResult"):
        assert f'id="{name}"' in python
    assert "<td><p>string: one line for the reports</p></td>" in (site / "docs/reference/suite.html").read_text()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_reader_comes_from_the_start_page_to_a_chapter_and_searches(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    assert page.locator(".sidebar-tree .caption").all_inner_texts() == [
        "GUIDE",
        "CONCEPTS",
        "REFERENCE",
        "STUDIES",
        "PROJECT",
    ]
    page.locator(".sidebar-tree").get_by_role("link", name="Is B slower than A?").click()
    assert page.locator("article h1").inner_text().startswith("Is B slower than A?")
    page.locator(".sidebar-search").fill("interleaved")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="The suite file").first.wait_for(timeout=20_000)


def test_a_page_with_a_broken_link_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    shutil.copytree(CHECKOUT / "docs/site", source / "docs/site", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "docs/reference").mkdir()
    shutil.copy(CHECKOUT / "pyproject.toml", source)
    links = "[one](docs/other.md#nowhere) and [two](docs/missing.md)"
    (source / "README.md").write_text(f"# Redline\n\n{links}\n\n## Read on\n\n- Guide: [other](docs/other.md)\n")
    (source / "docs/other.md").write_text("# Other\n\nText.\n")
    (source / "docs/lost.md").write_text("# Lost\n\nNo page names this.\n")
    done = built(source, tmp_path / "docs")
    assert done.returncode == 1
    for words in ("'nowhere'", "'docs/missing", "docs/lost.md: WARNING: document isn't included in any toctree"):
        assert words in done.stderr
