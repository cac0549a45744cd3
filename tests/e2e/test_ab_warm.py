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
  const found = work(20000, 31) + work(more || 1, 33);
  answer.end('x'.repeat(64) + (found & 1));
});
server.keepAliveTimeout = 600000;
server.listen(port, '127.0.0.1');
"""
PLANTED = 16_000
"""The rounds of a second loop, beside 20,000: some 30% of the CPU time of a request.

Both servers have that loop: without it V8 compiles the first one worse, and A is dearer than B on some machines.
"""


@pytest.fixture
def node(tmp_path: Path) -> str:
    """The command of a server on Node; with ` N` appended, its second loop has N rounds."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    (tmp_path / "server.js").write_text(SERVER)
    return shlex.join([found, str(tmp_path / "server.js"), "{port}"])


def warm_ratio(redline: Redline, *commands: str) -> float:
    """The second server's CPU time per request over the first's, by the kernel's clock.

    Both are warmed up and then loaded for a second in turn, six times, so that a slow moment meets both.
    """
    ports = (18_471, 18_472)
    servers = [
        psutil.Popen(shlex.split(command.format(port=port))) for command, port in zip(commands, ports, strict=True)
    ]
    used, answered = [0.0, 0.0], [0, 0]
    try:
        for server, port in zip(servers, ports, strict=True):
            for _ in range(100):
                if any(each.laddr.port == port for each in server.net_connections() if each.status == "LISTEN"):
                    break
                time.sleep(0.05)
            assert redline("load", f"http://127.0.0.1:{port}/", "-c", "16", "-d", "4s").code == 0
        for turn in (0, 1, 1, 0) * 3:
            before = servers[turn].cpu_times()
            url = f"http://127.0.0.1:{ports[turn]}/"
            counts = redline("load", url, "-c", "16", "-d", "1s", "--warmup", "0s", "--json").json["counts"]
            after = servers[turn].cpu_times()
            used[turn] += after.user + after.system - before.user - before.system
            answered[turn] += int(counts["outcomes"]["ok"])
    finally:
        for server in servers:
            server.kill()
            server.wait()
    return (used[1] / answered[1]) / (used[0] / answered[0])


def test_a_difference_of_servers_on_node_is_that_of_warm_ones(redline: Redline, node: str) -> None:
    truth = warm_ratio(redline, node, f"{node} {PLANTED}")
    report = Report.model_validate(redline("ab", node, f"{node} {PLANTED}", "--for", "30s", "--json").json)
    ratio = answer(report).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    # The truth is measured separately, at another time, so it is known to a few percent. Cold starts halve a change.
    assert ratio.low / 1.06 < truth < ratio.high * 1.06
    assert ratio.high / ratio.low < 1.5
    assert answer(report).verdict is Verdict.SLOWER
