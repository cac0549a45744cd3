"""The pytest plugin in projects of its users: a fixture, a marker, an option, and words for what fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import reports

pytest_plugins = ["pytester"]
CHECKOUT = Path(__file__).parents[3]

FAKED = """\
import pytest
import redline
from redline.api.results import RunResult
from tests.fakes import reports

@pytest.fixture(autouse=True)
def measured(monkeypatch):
    result = RunResult(reports.alone(), None)
    vars(result).update(cells=result.cells[:1])
    monkeypatch.setattr(redline, "load", lambda url, **given: result, raising=False)
"""
PASSES = "def test_fast(redline):\n    assert redline.load('http://127.0.0.1:1/').p99 < '20s'\n"
FAILS = "def test_slow(redline):\n    assert redline.load('http://127.0.0.1:1/').p99 < '1ns'\n"
OTHER = "def test_other():\n    pass\n"


def arguments(*args: str) -> tuple[str, ...]:
    """The arguments of a user's pytest that has the plugin, installed or not."""
    return ("-p", "no:redline", "-p", "redline.pytest_plugin", "-p", "no:cacheprovider", *args)


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run the tests of a user's folder, in this process, which has imported all that they import."""
    return pytester.runpytest_inprocess(*arguments(*args))


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)]))
    pytester.makeconftest(FAKED)
    reports.alone()  # kept for the conftest


def test_a_test_that_passes_says_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=PASSES)
    done = pytester.runpytest_subprocess(*arguments("--strict-markers", "-W", "error"), timeout=120)
    done.assert_outcomes(passed=1)
    assert "throughput" not in done.stdout.str()


def test_a_test_that_fails_shows_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=FAILS)
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E *p99 *, not < 1ns", "*redline load*", "*rust.*"])


def test_an_error_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    code = "def test_none(redline):\n    redline.server('./none --port {port}')\n"
    pytester.makepyfile(test_shop=code)
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [">*redline.server*", "E *there is no *none", "E *hint: *", "test_shop.py:2: LaunchError"]
    )
    assert "pytest_plugin.py" not in done.stdout.str()


def test_tests_that_measure_have_a_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=PASSES + FAILS + OTHER)
    run(pytester, "-m", "not redline").assert_outcomes(passed=1, deselected=2)
    run(pytester, "-m", "redline").assert_outcomes(passed=1, failed=1, deselected=1)
    assert "@pytest.mark.redline: measures a server" in run(pytester, "--markers").stdout.str()


def test_pages_are_kept_where_they_are_asked_for(pytester: pytest.Pytester) -> None:
    moved = PASSES.replace("(redline)", "(redline, tmp_path, monkeypatch)").replace(
        "):\n", "):\n    monkeypatch.chdir(tmp_path)\n", 1
    )
    pytester.makepyfile(test_shop=moved)
    run(pytester, "--redline-html", "pages").assert_outcomes(passed=1)
    (page,) = (pytester.path / "pages").iterdir()
    assert page.name == "test_shop.py-test_fast-1-load.html"
    assert page.read_text().lower().startswith("<!doctype html>")


def test_a_test_with_a_long_name_has_a_page_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=PASSES.replace("test_fast", f"test_{'x' * 400}"))
    run(pytester, "--redline-html", "pages").assert_outcomes(passed=1)
    (page,) = (pytester.path / "pages").iterdir()
    assert re.fullmatch(r"x{120}-[0-9a-f]{8}-1-load\.html", page.name)


def test_tests_whose_names_differ_in_signs_have_pages_of_their_own(pytester: pytest.Pytester) -> None:
    body = PASSES.replace("(redline)", "(redline, path)")
    pytester.makepyfile(
        test_shop=f"import pytest\n\n@pytest.mark.parametrize('path', ['/items', '/items/', 'items'])\n{body}"
    )
    run(pytester, "--redline-html", "pages").assert_outcomes(passed=3)
    assert len([*(pytester.path / "pages").iterdir()]) == 3


def test_a_fixture_of_the_users_own_takes_precedence(pytester: pytest.Pytester) -> None:
    own = "import pytest\n@pytest.fixture\ndef redline():\n    return 'own'\n"
    pytester.makepyfile(test_shop=f"{own}\ndef test_own(redline):\n    assert redline == 'own'\n")
    run(pytester, "-m", "not redline").assert_outcomes(passed=1)


def test_without_an_engine_it_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        FAKED
        + "from redline.errors import DriveError\n"
        + "def none():\n    raise DriveError('redline-engine is not installed', hint='install it')\n"
        + "import redline.driving.engine_process as process\nprocess.find_engine = none\n"
    )
    pytester.makepyfile(test_shop=PASSES)
    done = pytester.runpytest_subprocess(*arguments("-rs"), timeout=120)  # its lab lacks the engine from then on
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*redline-engine is not installed: install it"])


def test_the_plugin_imports_nothing_before_a_test_asks() -> None:
    code = (
        "import sys, pytest; before = {*sys.modules}; import redline.pytest_plugin; print(*({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert {*done.stdout.split()} == {"redline", "redline.pytest_plugin"}
