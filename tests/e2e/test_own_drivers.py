"""Drivers that another package brings: that of the guide, and what goes wrong with one."""

import json
import shlex
import sys

import pytest

from tests.e2e.conftest import Done, Redline
from tests.e2e.extended import Guide, ended
from tests.e2e.test_documented_commands import documented

pytestmark = pytest.mark.e2e
PAGE = "own-drivers.md"
SHORT = ("-d", "400ms", "--warmup", "200ms", "--trials", "1")


@pytest.fixture
def guide(redline: Redline) -> Guide:
    guide = Guide(PAGE)
    suite = guide.block("yaml").replace("python3 ", f"{sys.executable} ")
    (redline.folder / "loop.yaml").write_text(suite)
    return guide


def test_the_driver_of_the_guide_makes_the_load(redline: Redline, guide: Guide) -> None:
    (command,) = documented(f"docs/guide/{PAGE}")
    args = [*shlex.split(command), *SHORT]
    code, _, err = ended(redline, *args)
    assert (code, "there is no driver loop" in err, (redline.folder / "runs").exists()) == (2, True, False)
    guide.install(redline)
    Done(*ended(redline, *args)).measured()
    run = redline.folder / "runs/loop"
    (cell,) = json.loads((run / "results.json").read_text())["cells"]
    (finding,) = [it for it in cell["findings"] if it["kind"] == "other-driver"]
    assert (finding["grade"], "the driver loop 1.0, which Redline" in finding["message"]) == ("warn", True)
    (recording,) = [json.loads(file.read_text()) for file in run.glob("recordings/*.json")]
    traffic = recording["traffic"]
    assert (traffic["engine"]["name"], traffic["engine"]["backend"], "clocks" in traffic) == (
        "loop",
        "http.client",
        False,
    )
    assert {series["name"] for series in recording["series"] if series["subject"] == "engine"} >= {"cpu_ns"}
    assert traffic["counts"]["due"] == traffic["counts"]["outcomes"]["ok"] > 0


@pytest.mark.long
def test_what_a_driver_cannot_do_or_says_wrongly_is_the_failure_of_its_trial(redline: Redline, guide: Guide) -> None:
    code_of = guide.block("python")
    suite = redline.folder / "loop.yaml"
    written = suite.read_text()
    guide.install(redline)
    suite.write_text(written.replace("users: 1", "users: 2"))
    failed_with(redline, "the driver loop of redline-loop: it is one user with one request")
    suite.write_text(written)
    guide.install(redline, code_of.replace("    window = [it for", "    made = made[:-3]\n    window = [it for"))
    failed_with(redline, "fell due in its intervals, and")


def failed_with(redline: Redline, words: str) -> None:
    code, _, err = ended(redline, "run", "loop.yaml", *SHORT)
    assert (code, "Traceback" in err) == (1, False), err
    assert words in " ".join(err.split())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def command(): return 1 / 0", "gave no command: ZeroDivisionError"),
        ("def command(): return 'a b'", "gave no command: it is 'a b', not a list of texts"),
    ],
)
def test_a_driver_without_a_command_is_an_error_before_anything_starts(
    code: str, words: str, redline: Redline, guide: Guide
) -> None:
    guide.install(redline, code)
    code_, out, err = ended(redline, "run", "loop.yaml", "-o", "out", *SHORT)
    assert (code_, out, words in err) == (2, "", True), err
    assert not (redline.folder / "out").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("design: duet\nbaseline: shop\n", "duets are made by redline-engine"),
        ("budget: 60s\n", "in duets, which only redline-engine makes"),
    ],
)
def test_a_suite_of_duets_has_no_driver(more: str, words: str, redline: Redline, guide: Guide) -> None:
    suite = redline.folder / "loop.yaml"
    suite.write_text(suite.read_text().replace("trials: 2\n", "") + more)
    done = redline("check", "loop.yaml")
    assert (done.code, words in done.err) == (2, True), done.err
