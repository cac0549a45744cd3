"""`-o FILE`: each command that measures writes its report in the format of the file's ending, and keeps no more."""

from pathlib import Path

import pytest

from redline.model import Report
from redline.model.limits import LimitReport
from tests.e2e.conftest import Redline
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SUITE = """\
servers: [{{name: there, url: '{server}'}}]
scenarios: [{{name: root, get: '{path}'}}]
loads: {{few: {{closed: {{users: 2}}, for: 300ms}}}}
warmup: 50ms
trials: 1
"""


def test_a_load_and_a_run_write_pages_and_json_and_replace_nothing(redline: Redline) -> None:
    folder = redline.folder
    with targets.target(targets.healthy) as url:
        server, slash, path = url.rpartition("/")
        (folder / "suite.yaml").write_text(SUITE.format(server=server, path=slash + path))
        loaded = redline("load", url, "-c", "2", "-d", "300ms", "-o", "load.json")
        ran = redline("run", "suite.yaml", "-o", "run.html")
        again = redline("load", url, "-o", "run.html")
    assert "throughput" in loaded.out
    assert f"report: {(folder / 'load.json').resolve()}" in loaded.err
    assert Report.model_validate_json((folder / "load.json").read_bytes()).cells[0].counts.completed > 0
    assert (folder / "run.html").read_text().startswith("<!doctype html>")
    assert str((folder / "run.html").resolve()) in ran.err
    assert next(path.name for path in (folder / "runs").iterdir()).endswith("-suite")
    again.refused(2, "run.html exists already")
    assert {path.name for path in folder.iterdir()} == {"suite.yaml", "load.json", "run.html", "runs"}


@pytest.mark.long
def test_a_comparison_and_a_search_write_theirs(redline: Redline, oracle: Path) -> None:
    folder, server = redline.folder, f"{oracle} null --port {{port}}"
    compared = redline("ab", server, server, "--load", "closed:2", "--for", "4s", "-o", "ab.md")
    assert (folder / "ab.md").is_file(), compared.err
    assert "CPU per request" in (folder / "ab.md").read_text()
    short = ("-d", "1s", "--warmup", "50ms", "--probes", "2", "--start", "100", "--objective", "p99 < 1s")
    with targets.target(targets.healthy) as url:
        searched = redline("limit", url, *short, "-o", "limit.json")
    assert LimitReport.model_validate_json((folder / "limit.json").read_bytes()).cells, searched.err
    assert {path.name for path in folder.iterdir()} == {"ab.md", "limit.json"}
