"""The documentation as a site: `make docs` builds it with Sphinx from the Markdown that GitHub shows.

The source folder is the checkout itself, so that links to catalogue, suites and README work in both places. README is
the start page, and its section "Read on" is the table of contents: a page that it does not reach is an error.
"""

import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import reference  # noqa: E402 - it lies beside this file

project = "Redline"
author = "the authors of Redline"
project_copyright = "the authors of Redline, Apache-2.0"
release = version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]  # type: ignore[index]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "bench/results.md", "catalogue/README.md", "docs/**.md"]
exclude_patterns = [".*", "runs", "dist", "engine", "src", "tests", "catalogue/*/**"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]  # lists of flags
nitpicky = False  # annotations name types of the standard library and pydantic, whose documentation is elsewhere
default_role = "literal"  # single backticks, as docstrings have them
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
highlight_language = "none"
smartquotes = False  # in texts of flags `--port` stays what it is

html_theme = "furo"
html_title = f"Redline {release}"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page of a folder cannot fetch others

BELOW = {
    "docs/decisions/README": ["0*"],
    "docs/concepts/statistics": ["simulations"],
    "docs/concepts/limit": ["limit-simulations"],
    **{f"docs/studies/{study}": [f"{study}/claims"] for study in ("clojure", "petstore", "tapir")},
    "ARCHITECTURE": ["bench/results"],
}
"""Pages that README does not name, below the page that does."""


def contents(readme: str) -> str:
    """Return the tables of contents that README's section "Read on" describes."""
    read_on = readme.partition("\n## Read on\n")[2]
    chapters = re.split(r"^- ", read_on.partition("\n\nApache")[0], flags=re.MULTILINE)[1:]
    written = []
    for chapter in chapters:
        head = re.match(r"(\w+)[:,]", chapter)
        pages = re.findall(r"\]\(([^)#]+)\.md\)", chapter)
        written.append(toctree(head[1] if head else "Project", pages))
    return "\n".join(written)


def toctree(caption: str, pages: list[str]) -> str:
    """Return a hidden table of contents; without a caption if that is empty."""
    named = f":caption: {caption}\n" if caption else ""
    return "\n".join(["", "```{toctree}", f":hidden:\n:glob:\n{named}", *pages, "```", ""])


def complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Add to a page what only the site has: tables of contents, and the reference that is made from code."""
    del app
    text = source[0]
    if name == root_doc:
        text += contents(text)
    if name in BELOW:
        text += toctree("", BELOW[name])
    source[0] = reference.added(name, text)


def start_page(app: Sphinx, error: Exception | None) -> None:
    """Give the start page the name that servers and file managers open."""
    if error is None and app.builder.format == "html":
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what Sphinx calls; several processes may read and write pages."""
    app.connect("source-read", complete)
    app.connect("build-finished", start_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
