"""The manual page, the completions and llms.txt are made from the commands."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from redline.cli import manual
from redline.cli.command_line import FLAGS


def test_the_manual_page_has_every_command_and_flag() -> None:
    page = manual.man_page("0.1.0").replace("\\-", "-")
    for name, flags in FLAGS.items():
        assert f"\n.SS redline {name}" in page
        for declared in flags.declared().values():
            for flag in declared.param_decls or ():
                assert f"{flag}" in page, (name, flag)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_the_manual_page_is_sound_roff() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8"],
        input=manual.man_page("0.1.0"),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""


def test_llms_txt_names_every_command_and_document() -> None:
    documents = {"docs/guide/ab.md": "# Is B slower?\n\nIt compares two servers. More.\n", "README.md": "# Redline\n"}
    text = manual.llms_txt(documents)
    assert text.startswith("# Redline\n\n> ")
    assert "- [Is B slower?](docs/guide/ab.md): It compares two servers\n" in text
    assert "## Guide\n" in text
    for name in FLAGS:
        assert f"- `redline {name}" in text


@pytest.mark.parametrize("name", sorted(manual.completions()))
def test_a_completion_asks_redline(name: str) -> None:
    script = manual.completions()[name]
    assert "_REDLINE_COMPLETE" in script
    if "bash" in name:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)


REFERENCE = Path(__file__).parents[3] / "docs/reference/commands.md"


def test_every_flag_is_in_the_reference() -> None:
    reference = REFERENCE.read_text()
    for name, flags in FLAGS.items():
        for declared in flags.declared().values():
            names = [re.escape(flag) for flag in declared.param_decls or ()]
            assert not names or re.search(rf"(?<![\w-])({'|'.join(names)})(?![\w-])", reference), (name, names)


def test_exit_codes_are_those_of_the_reference() -> None:
    reference = REFERENCE.read_text()
    for code, _ in manual.EXIT_CODES:
        assert f"\n| {code} | " in reference
