"""Handshakes and one-way times: signed distributions keep their sign, and every format of a report shows them."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.console import Console

from redline.analysis import build_report, other_times
from redline.analysis.distributions import distributions
from redline.cli.show import show
from redline.document.format import agreed, other_time, quantile_name
from redline.extras.exports.hdr_files import interval_log, percentile_distribution
from redline.model import (
    AgreedTls,
    CellReport,
    Histogram,
    OneWay,
    OtherTime,
    Report,
    Request,
    Scenario,
    Signed,
    Timestamp,
)
from redline.model.traffic import earlier_first_byte
from redline.quantities import duration
from redline.render import RENDERERS, summary
from redline.report.plots import payload
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_run

CLOCK = Scenario(name="Clock", request=Request(path="/now", timestamp=Timestamp(pointer="/now", unit="ms")))
TIMED = simulated_run(
    {"rust.hyper": replace(GOOD, handshake_ns=1.5e6, clock_ahead_ns=-3e6)},
    trials=2,
    scenarios=(CLOCK,),
    loads=(SATURATE,),
    ceiling=None,
)
PLAIN = simulated_run(trials=2, loads=(SATURATE,), ceiling=None)

differences = st.lists(st.integers(-(10**12), 10**12).filter(bool), min_size=1, max_size=50)


def signed(values: list[int]) -> Signed:
    return Signed(
        negative=Histogram.of([-value for value in values if value < 0]),
        positive=Histogram.of([value for value in values if value > 0]),
    )


@given(differences, st.floats(0.01, 1))
def test_signed_quantiles_are_those_of_the_values(values: list[int], q: float) -> None:
    (found,) = signed(values).quantiles_ns((q,))
    exact = float(np.quantile(values, q, method="inverted_cdf"))
    assert found == pytest.approx(exact, rel=2e-3, abs=1)


@given(differences, differences)
def test_merging_signed_distributions_loses_nothing(one: list[int], other: list[int]) -> None:
    merged = Signed.merged([signed(one), signed(other)])
    assert merged == signed(one + other)
    assert merged.count == len(one) + len(other)


def test_nothing_merges_to_nothing() -> None:
    assert OneWay.merged([]) is None
    assert Signed.merged([]).quantiles_ns((0.5, 1.0)) == (0, 0)


def cells(timed: bool) -> tuple[CellReport, ...]:
    return build_report(TIMED if timed else PLAIN).cells


def test_they_are_reported_where_they_are_known() -> None:
    (cell,) = cells(timed=True)
    handshake, to_server, from_server = cell.other_times
    # Handshakes are over before the measurement, and count all the same: one for each of the users of both trials.
    assert (handshake.name, handshake.count, handshake.resolution_ns) == ("handshake", 128, None)
    assert handshake.p99_ns is None
    assert handshake.max_ns > handshake.p50_ns > 0
    assert to_server.count == from_server.count == cell.response.count
    assert to_server.resolution_ns == from_server.resolution_ns == 1_000_000
    assert to_server.p50_ns < 0 < from_server.p50_ns
    assert to_server.p99_ns is not None
    assert to_server.p50_ns <= to_server.p99_ns <= to_server.max_ns


def test_where_they_are_not_known_nothing_is_reported() -> None:
    assert all(cell.other_times == () for cell in cells(timed=False))
    for form in ("html", "md", "csv", "json"):
        text = RENDERERS[form](build_report(PLAIN)).decode()
        assert "other_times" not in text
        assert "one-way" not in text.lower()


def test_every_format_shows_them() -> None:
    report = build_report(TIMED)
    (cell,) = report.cells
    text = {form: RENDERERS[form](report).decode() for form in ("html", "md", "csv", "json")}
    assert "handshakes and one-way times" in text["html"]
    assert text["html"].count('<td class="left">to server</td>') == 1
    assert "handshake: p50" in text["md"]
    assert "the server's with a resolution of 1.00 ms" in text["md"]
    rows = [line.split(",") for line in text["csv"].splitlines() if "-server-" in line or "handshake-" in line]
    assert len(rows) == 30
    assert str(cell.other_times[1].p50_ns) in text["csv"]
    assert f'"p50_ns": {cell.other_times[0].p50_ns}' in text["json"]


def test_every_format_has_the_whole_distribution_each_way() -> None:
    report = build_report(TIMED)
    (cell,) = report.cells
    terminal = console_text(report)
    markdown, html, table = (RENDERERS[form](report).decode() for form in ("md", "html", "csv"))
    to_server, from_server = cell.other_times[1:]
    assert [point.q for point in to_server.points][-4:] == [0.995, 0.999, 0.9995, 1.0]
    assert (to_server.points[-1].ns, to_server.p50_ns) == (to_server.max_ns, at(to_server, 0.5))
    for time in (to_server, from_server):
        for q in (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0):
            text = duration(at(time, q))
            assert all(text in shown for shown in (terminal, markdown, html)), (time.name, q)
            assert f",{time.name.replace(' ', '-')}-{quantile_name(q)},{at(time, q)}," in table
    assert ",to-server-p99.9999,," in table
    assert "| p99.9 |" in markdown
    (curve,) = payload(report)["groups"][0]["curves"]
    assert list(curve["more"]) == ["to server", "from server"]
    assert min(ns for way in curve["more"].values() for ns in way["y"]) > 0  # the axis is logarithmic
    assert 'value="from server"' in html


def test_a_deep_distribution_has_six_nines() -> None:
    values = np.arange(1, 1_000_001)
    ways = OneWay(to_server=signed_of(values), from_server=signed_of(values - 1_000))
    to_server, from_server = other_times(None, {}, [ways] * 10, 1_000_000)
    assert [point.q for point in to_server.points][-3:] == [0.999995, 0.999999, 1.0]
    assert at(to_server, 0.999999) == pytest.approx(999_999, rel=2e-3)
    assert at(from_server, 0.0) < 0 < at(from_server, 0.5)


def test_one_way_times_are_written_for_hdr_histogram() -> None:
    parts = {part.name: part for part in distributions(TIMED)}
    name = "rust.hyper.Clock.saturate.trial-1"
    assert {f"{name}.{kind}" for kind in ("response", "service", "to-server", "from-server")} <= set(parts)
    times = parts[f"{name}.to-server"].times
    assert isinstance(times, Signed)
    text = percentile_distribution(times).decode()
    assert "-" in text.splitlines()[2].split()[0]
    assert f"Total count    = {times.count:12d}" in text
    log = b"".join(interval_log(distributions(TIMED), "timed")).decode()
    counts = {"negative": 0, "positive": 0}
    for line in log.splitlines():
        if line.startswith(f"Tag={name}.to-server"):
            sign = "negative" if line.startswith(f"Tag={name}.to-server.negative,") else "positive"
            counts[sign] += Histogram.decode(line.rpartition(",")[2]).count
    assert counts == {"negative": times.negative.count, "positive": times.positive.count}
    assert counts["negative"] > 0


def test_one_way_times_of_unknown_clocks_are_not_written() -> None:
    ways = OneWay(to_server=signed([5_000_000] * 20), from_server=signed([6_000_000] * 20))
    assert ways.is_known(0)
    assert ways.is_known(500_000)
    assert not ways.is_known(500_001 + 10_000)
    assert not ways.is_known(None)
    assert not OneWay(to_server=signed([]), from_server=signed([])).is_known(0)


def test_a_report_of_an_earlier_version_has_the_percentiles_that_it_has() -> None:
    time = cells(timed=True)[0].other_times[1].model_copy(update={"percentiles": ()})
    assert [(point.q, point.ns) for point in time.points] == [
        (0.5, time.p50_ns),
        (0.99, time.p99_ns),
        (1.0, time.max_ns),
    ]
    assert len(time.model_copy(update={"p99_ns": None}).points) == 2


def console_text(report: Report) -> str:
    console = Console(file=io.StringIO(), width=80)
    show(summary(report), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def at(time: OtherTime, q: float) -> int:
    return next(point.ns for point in time.points if point.q == q)


def signed_of(values: NDArray[np.int64]) -> Signed:
    return Signed(negative=Histogram.of(-values[values < 0]), positive=Histogram.of(values[values > 0]))


def test_every_format_shows_the_tls_that_was_agreed_on() -> None:
    report = build_report(TIMED)
    (cell,) = report.cells
    assert cell.tls == (AgreedTls(version="1.3", cipher="simulated", alpn="http/1.1"),)
    for form in ("html", "md"):
        assert "TLS 1.3, simulated, http/1.1" in RENDERERS[form](report).decode()
    assert '"cipher": "simulated"' in RENDERERS["json"](report).decode()
    assert agreed(AgreedTls(version="1.2", cipher="X", insecure=True)) == "TLS 1.2, X, certificate not checked"
    assert b'"cipher"' not in RENDERERS["json"](build_report(PLAIN))


def test_of_each_agreement_there_is_one_line() -> None:
    first, *others = TIMED.recordings
    assert first.traffic is not None
    older = first.traffic.model_copy(update={"tls": AgreedTls(version="1.2", cipher="simulated")})
    run = TIMED.model_copy(update={"recordings": (first.model_copy(update={"traffic": older}), *others)})
    (cell,) = build_report(run).cells
    assert [tls.version for tls in cell.tls] == ["1.2", "1.3"]


def test_in_words() -> None:
    handshake, to_server, _ = cells(timed=True)[0].other_times
    assert other_time(handshake.model_copy(update={"p50_ns": 1_240_000, "max_ns": 3_100_000})) == (
        "handshake: p50 1.24 ms, max 3.10 ms (128 of them)"
    )
    short = to_server.model_copy(update={"p50_ns": -2_000_000, "p99_ns": -1_000, "max_ns": 5, "count": 1000})
    assert other_time(short) == (
        "to server: p50 -2.00 ms, p99 -1.00 µs, max 5 ns (1,000 of them, by two clocks, "
        "the server's with a resolution of 1.00 ms)"
    )


def test_of_a_trial_without_a_handshake_there_is_no_time() -> None:
    traffic = PLAIN.recordings[0].traffic
    assert traffic is not None
    assert traffic.all_handshakes is None
    assert other_times(None, {"handshake": [None, Histogram()]}, [traffic.measured_one_way], None) == ()


def test_the_first_byte_is_shown_where_answers_come_in_pieces() -> None:
    late, early = Histogram.of([10_000_000] * 2000), Histogram.of([1_000_000] * 2000)
    traffic = PLAIN.recordings[0].traffic
    assert traffic is not None
    pieces = traffic.model_copy(update={"response": late, "first_byte": early})
    whole = traffic.model_copy(update={"response": late, "first_byte": late})
    unknown = traffic.model_copy(update={"response": late, "first_byte": None})
    assert earlier_first_byte([pieces, pieces]) == Histogram.merged([early, early])
    assert earlier_first_byte([whole]) is None
    # In a part of the trials the engine did not say it.
    assert earlier_first_byte([pieces, unknown]) is None
    (time,) = other_times(earlier_first_byte([pieces]), {}, [], None)
    assert (time.name, time.count, time.is_one_way) == ("first byte", 2000, False)
    assert time.p50_ns == pytest.approx(1_000_000, rel=0.001)
