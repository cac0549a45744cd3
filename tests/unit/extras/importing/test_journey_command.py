"""`redline import --journey`: what it says of files that are none, and of a recording."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.errors import UsageError


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("curl http://shop.test/a\n", "is a file of curl commands, which has no journey"),
        ("http://shop.test/a\n", "is a list of URLs, which has no journey"),
        ('10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 1\n', "is an access log, which has no"),
        ("- {name: a, get: /a}\n", "is a list of requests, or a journey, which has no journey"),
    ],
)
def test_a_file_without_a_journey_is_named(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(UsageError, match=what):
        CliRunner().invoke(app, ["import", str(file), "--journey"], catch_exceptions=False)


def test_a_single_step_is_counted(tmp_path: Path) -> None:
    entry = {"request": {"method": "GET", "url": "http://shop.test/a"}, "response": {"status": 200}}
    (tmp_path / "one.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    shown = CliRunner().invoke(app, ["import", str(tmp_path / "one.har"), "--journey"], catch_exceptions=False).stdout
    assert "a journey of 1 step\n" in shown
