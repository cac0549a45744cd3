"""The three stories of docs/guide/stories.md, on the files that lie beside it."""

import gzip
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.compared import compared
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.recorded import loaded

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")]
PAGE = (CHECKOUT / "docs/guide/stories.md").read_text()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    """The shop of the page, with its files in the current folder; its URL."""
    shutil.copytree(CHECKOUT / "docs/guide/stories", tmp_path, dirs_exist_ok=True)
    (tmp_path / "access.log").write_bytes(gzip.decompress((tmp_path / "access.log.gz").read_bytes()))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([tmp_path / "old", "--port", str(port)])
    try:
        for _ in range(200):
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def shown(begins: str) -> str:
    """The block of output in the page that begins like this."""
    blocks: list[str] = re.findall(r"^```text\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith(begins))


def test_a_login_is_made_of_a_recording(redline: Redline, shop: str) -> None:
    done = redline("import", "shop.har", "--journey", "-o", "checkout.yaml")
    assert done.out == shown("shop.har: ")
    done = redline("load", shop, "--requests", "checkout.yaml", "-c", "40", "-d", "2s", "--warmup", "500ms", "--json")
    assert done.code in {0, 1}, done.err
    journeys = done.json["journeys"]
    assert journeys["begun"] >= 40
    assert not journeys["abandoned"]
    assert "shrinking-answers" not in {finding["kind"] for finding in done.json["findings"]}
    assert done.json["counts"]["outcomes"]["ok"] == done.json["counts"]["due"]


@pytest.mark.long
def test_the_log_of_yesterday_is_sent_to_both(redline: Redline, shop: str, tmp_path: Path) -> None:
    done = redline("load", shop, "--replay", "access.log", "--speed", "2x", "-d", "1s", "--json")
    assert done.code in {0, 1}, done.err
    for line in shown("6 requests from access.log").splitlines()[:2]:
        assert line in done.err
    assert done.json["counts"]["outcomes"]["ok"] > 30
    both = ("./old --port {port}", "./new --port {port}")
    done = compared(redline, *both, "--replay", "access.log", "--speed", "2x", lengths=("5s", "20s"), keep="AB")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "AB" / "results.json").read_text())
    assert [request["request"] for request in report["cells"][1]["requests"]][:1] == ["items"]
    (cpu,) = [one for one in report["comparisons"] if one["metric"] == "cpu-per-request"]
    assert cpu["ratio"]["value"] > 1


def test_the_first_byte_and_the_first_event_of_a_stream_are_told_apart(redline: Redline, shop: str) -> None:
    events = ("--events", "sse until 20 stall 500ms")
    done, traffic = loaded(redline, f"{shop}/chat", *events, "-c", "5", "-d", "2s", "--warmup", "500ms")
    assert done.json["streams"]["events"] >= 20
    assert traffic.streams is not None
    assert traffic.first_byte is not None
    # The shop waits for 20 ms between both.
    assert traffic.first_byte.quantile_ns(0.5) + 10e6 < traffic.streams.first_event.quantile_ns(0.5)
