"""`redline ab` on servers that compile while they run: it reports what warm servers need, or that it is not known."""

import shlex
import shutil
import time
from pathlib import Path

import psutil
import pytest

from redline.model import Report, Verdict
from tests.e2e.compared import answer
from tests.e2e.conftest import Redline

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

SERVER = """
const [port, more] = process.argv.slice(2).map(Number);
function work(n, by) { let x = 1; for (let i = 0; i < n; i++) x = (x * by + i) | 0; return x; }
const server = require('http').createServer((_, answer) => {
  const found = work(20000, 31) + (more ? work(more, 33) : 0);
  answer.end('x'.repeat(64) + (found & 1));
});
server.keepAliveTimeout = 600000;
server.listen(port, '127.0.0.1');
"""
PLANTED = 16_000
"""The rounds of a second loop, beside 20,000: some 30% of the CPU time of a request."""


@pytest.fixture
def node(tmp_path: Path) -> str:
    """The command of a server on Node; with ` N` appended, its second loop has N rounds."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    (tmp_path / "server.js").write_text(SERVER)
    return shlex.join([found, str(tmp_path / "server.js"), "{port}"])


def warm_cpu_per_request(redline: Redline, command: str) -> float:
    """The CPU time of a request to the server alone, by the kernel's clock, after a load for a while."""
    port = 18_471
    server = psutil.Popen(shlex.split(command.format(port=port)))
    try:
        for _ in range(100):
            if any(each.laddr.port == port for each in server.net_connections() if each.status == "LISTEN"):
                break
            time.sleep(0.05)
        url = f"http://127.0.0.1:{port}/"
        assert redline("load", url, "-c", "16", "-d", "4s").code == 0
        before = server.cpu_times()
        counts = redline("load", url, "-c", "16", "-d", "4s", "--warmup", "0s", "--json").json["counts"]
        after = server.cpu_times()
    finally:
        server.kill()
        server.wait()
    return float(after.user + after.system - before.user - before.system) / int(counts["outcomes"]["ok"])


def test_a_difference_of_servers_on_node_is_that_of_warm_ones(redline: Redline, node: str) -> None:
    truth = warm_cpu_per_request(redline, f"{node} {PLANTED}") / warm_cpu_per_request(redline, node)
    report = Report.model_validate(redline("ab", node, f"{node} {PLANTED}", "--for", "30s", "--json").json)
    ratio = answer(report).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    # The truth is measured separately, at another time, so it is known to a few percent. Cold starts halve a change.
    assert ratio.low / 1.06 < truth < ratio.high * 1.06
    assert ratio.high / ratio.low < 1.5
    assert answer(report).verdict is Verdict.SLOWER
