"""The recorded output of other tools, and how it is parsed when it is not as expected."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.peers import ADAPTERS, PeerAdapter, PeerLoad
from redline.extras.peers.outputs.reading import time_ns

GOLDEN = Path(__file__).parents[3] / "golden" / "peers"
US, MS = 1e3, 1e6
READ = {
    "wrk": {0.5: 5.07 * MS, 0.75: 5.09 * MS, 0.9: 5.10 * MS, 0.99: 5.15 * MS, 1.0: 5.24 * MS},
    "wrk2": {
        0.5: 5.72 * MS,
        0.75: 5.98 * MS,
        0.9: 6.19 * MS,
        0.95: 6.243 * MS,
        0.99: 6.53 * MS,
        0.999: 6.88 * MS,
        0.9999: 6.88 * MS,
        0.99999: 6.88 * MS,
        1.0: 6.88 * MS,
    },
    "oha": {
        0.5: 5103505,
        0.75: 5121770,
        0.9: 5142315,
        0.95: 5161990,
        0.99: 5236822,
        0.999: 5628766,
        0.9999: 5912132,
        1.0: 5912132,
    },
    "vegeta": {0.5: 5215720, 0.9: 5736166, 0.95: 6346732, 0.99: 8397085, 1.0: 11908662},
    "k6": {0.5: 5102806, 0.9: 5150033.1, 0.99: 5614946, 0.999: 7188153.7, 1.0: 8177821},
    "h2load": {1.0: 7.82 * MS},
}
BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}


def printed(name: str) -> str:
    (file,) = GOLDEN.glob(f"{name}.*")
    return file.read_text()


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_what_a_peer_printed_is_read(name: str) -> None:
    found = BY_NAME[name].read(printed(name)).latencies_ns
    assert found == pytest.approx(READ[name])


def test_every_peer_has_a_golden_output_and_says_what_it_was_tried_with() -> None:
    assert set(READ) == set(BY_NAME)
    assert all(adapter.tried_with for adapter in ADAPTERS)
    assert [adapter.name for adapter in ADAPTERS if adapter.loop == "closed"] == ["wrk"]


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_an_output_that_is_cut_anywhere_gives_less_and_no_error(name: str) -> None:
    whole = printed(name)
    for length in range(0, len(whole), 37):
        found = BY_NAME[name].read(whole[:length]).latencies_ns
        assert all(ns >= 0 for ns in found.values())


@given(st.text(max_size=200))
def test_nonsense_is_read_as_nothing_or_numbers(text: str) -> None:
    for adapter in ADAPTERS:
        assert all(ns >= 0 for ns in adapter.read(text).latencies_ns.values())


@pytest.mark.parametrize(
    "text", ["{}", "[]", "{" * 5000, '{"latencies": 3}', '{"latencies": {"50th": "x", "max": -1}}', '{"metrics": []}']
)
def test_json_of_another_shape_is_read_as_nothing(text: str) -> None:
    assert all(adapter.read(text).latencies_ns == {} for adapter in ADAPTERS)


def test_later_h2load_reports_more() -> None:
    heads = "             min     max  median     p95     p99    mean      sd   +/- sd"
    times = "time for request:  5.12ms  7.82ms  5.20ms  6.00ms  7.00ms  5.32ms   240us   96.67%"
    text = f"{heads}\n{times}\n"
    assert BY_NAME["h2load"].read(text).latencies_ns == pytest.approx({0.5: 5.2e6, 0.95: 6e6, 0.99: 7e6, 1.0: 7.82e6})


def test_times() -> None:
    assert time_ns("240us") == 240 * US
    assert time_ns("5.07ms") == pytest.approx(5.07 * MS)
    assert time_ns("1.00m") == 60e9
    assert time_ns("-nanus") is None
    assert time_ns("5") is None


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_a_peer_is_asked_for_the_rate_and_the_length(adapter: PeerAdapter, tmp_path: Path) -> None:
    load = PeerLoad("http://127.0.0.1:1/path0", 50, 3.0, tmp_path, rate_per_s=2000)
    commands = adapter.commands(load)
    text = " ".join(part for command in commands for part in command) + "".join(
        file.read_text() for file in tmp_path.iterdir()
    )
    assert load.url in text
    assert "3" in text
    wanted = {"open": "40" if adapter.name == "h2load" else "2000", "closed": "-c50"}
    assert wanted[adapter.loop] in text
