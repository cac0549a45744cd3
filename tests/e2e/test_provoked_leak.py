"""A server that leaks is suspected of it; a server that allocates as much and keeps nothing is not."""

import re
import shutil
from pathlib import Path

import pytest

from redline.model import Report
from tests.e2e.conftest import Redline

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SOURCE = Path(__file__).parents[1] / "fakes" / "servers" / "Burning.java"
SERVERS = """\
runtime: jvm
build: {run: [javac, --release, "11", Burning.java], inputs: [Burning.java], outputs: [Burning.class]}
ready: {path: /, within: 30s}
options:
  jdk: {values: [path], default: path}
servers:
  leaking:
    about: keeps 8 KiB of each request
    start:
      command: ["{java}", -Xmx256m, -XX:+UseZGC, -XX:ZCollectionInterval=2, -cp, "{folder}", Burning, "{port}", "8192"]
  clean:
    about: keeps nothing
    start:
      command: ["{java}", -Xmx256m, -XX:+UseZGC, -XX:ZCollectionInterval=2, -cp, "{folder}", Burning, "{port}"]
"""
SUITE = """\
servers: [java.leaking, java.clean]
scenarios: [Ok]
loads: {steady: {open: {rate: 300, connections: 4}, for: 32s}}
warmup: 3s
trials: 1
"""


def test_a_server_that_leaks_is_suspected_of_it(redline: Redline) -> None:
    if shutil.which("javac") is None:
        pytest.skip("there is no JDK with javac")
    family = redline.folder / "catalogue" / "java"
    family.mkdir(parents=True)
    (family / "server.yaml").write_text(SERVERS)
    (family.parent / "scenarios.yaml").write_text("scenarios: {Ok: {get: /, expect: {status: 200, body: ok}}}\n")
    shutil.copy(SOURCE, family)
    (redline.folder / "suite.yaml").write_text(SUITE)
    done = redline("run", "suite.yaml", "-o", "run", "--json")
    report = Report.model_validate(done.json)
    found = {cell.server: [one for one in cell.findings if one.kind == "leak-suspected"] for cell in report.cells}
    assert found["java.clean"] == [], found
    (leak,) = found["java.leaking"]
    pace = re.search(
        r"What lived after collections of the whole heap grew from .* to .*, by ([\d.]+) MiB a second", leak.message
    )
    assert pace, leak.message
    assert float(pace[1]) == pytest.approx(300 * 8 / 1024, rel=0.25)
