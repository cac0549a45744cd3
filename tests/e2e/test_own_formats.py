"""A format that another package brings: that of the guide, and what goes wrong with one."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from redline import model
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.test_documented_commands import OWN_FORMATS
from tests.fakes import limits, reports

pytestmark = pytest.mark.e2e
GUIDE = (CHECKOUT / "docs/guide/own-formats.md").read_text()


def block(language: str) -> str:
    """The only block of the guide in a language."""
    (found,) = re.finditer(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    return found[1]


def install(redline: Redline, code: str) -> None:
    """Put the package of the guide on the path of the lab, with this code."""
    project = tomllib.loads(block("toml"))["project"]
    site = redline.folder / "site"
    metadata = site / f"redline_chat-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]["redline.renderers"].items()
    (metadata / "entry_points.txt").write_text("[redline.renderers]\n" + "".join(f"{k} = {v}\n" for k, v in points))
    (site / "redline_chat.py").write_text(code)
    redline.environment["PYTHONPATH"] = str(site)


def stored(redline: Redline, report: model.Report | object) -> Path:
    """The report in a file, where the commands of the guide have their run."""
    assert hasattr(report, "model_dump_json")
    file = redline.folder / "results.json"
    file.write_text(report.model_dump_json())
    return file


def ended(redline: Redline, *args: str | Path) -> tuple[int, str, str]:
    """Run the script itself: its path of modules is read at its start."""
    process = redline.start(*map(str, args))
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("command", OWN_FORMATS)
def test_the_format_of_the_guide_is_there_once_its_package_is(command: str, redline: Redline) -> None:
    file = stored(redline, reports.healthy())
    args = [file if word.startswith("runs/") else word for word in shlex.split(command)]
    code, _, err = ended(redline, *args)
    assert (code, "there is no format chat" in err) == (2, True)
    install(redline, block("python"))
    code, out, err = ended(redline, *args)
    assert (code, err) == (0, "")
    lines = json.loads(out)["text"].splitlines()
    assert sum(line.startswith("✅") for line in lines) + sum(line.startswith("❌") for line in lines) == 8
    assert any(line.startswith("slower: ") for line in lines)
    code, _, err = ended(redline, "report", stored(redline, limits.whole()), "--format", "chat")
    assert (code, "hint: use --format md" in err) == (2, True)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def render(report):\n    return report.nothing", ("AttributeError", "redline_chat.py:2")),
        ("def render(report):\n    return 'text'", ("gave no text: it is str, not bytes",)),
        ("def render(report):\n    return b'\\xff'", ("gave no text: ",)),
        ("import no_such_module", ("ModuleNotFoundError", "redline_chat.py:1")),
        ("", ("AttributeError", "render")),
    ],
)
def test_a_format_that_fails_is_an_error_of_its_package(code: str, words: tuple[str, ...], redline: Redline) -> None:
    install(redline, code)
    code_, out, err = ended(redline, "report", stored(redline, reports.healthy()), "--format", "chat")
    assert (code_, out) == (1, "")
    assert "Traceback" not in err
    for word in ("redline-chat", "hint: tell the authors", *words):
        assert word in err


def test_a_package_replaces_no_format_of_ours(redline: Redline) -> None:
    install(redline, "def render(report):\n    return b'mine'\n")
    for file in redline.folder.rglob("entry_points.txt"):
        file.write_text("[redline.renderers]\ncsv = redline_chat:render\n")
    code, out, _ = ended(redline, "report", stored(redline, reports.healthy()), "--format", "csv")
    assert code == 0
    assert "mine" not in out
