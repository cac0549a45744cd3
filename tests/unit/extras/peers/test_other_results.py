"""Results of other tools in `redline history` and `redline report`: what is read, refused, and never judged."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from redline.analysis.other_results import lines_of
from redline.cli.command_line import app
from redline.errors import NotStoredError, RedlineError, StoreError, UsageError
from redline.extras.peers.outputs import wrk
from redline.extras.peers.outputs.formats import read_results
from redline.model.history import OtherResult
from tests.fakes.histories import stored_run
from tests.golden import FOLDER

PEERS, RESULTS = FOLDER / "peers", FOLDER / "results"
READ = {
    "peers/wrk.txt": ("wrk", "http://127.0.0.1:18090/path0", "1 threads and 16 connections, 2s", 3133.87, 0),
    "results/wrk-resets.txt": ("wrk", "http://127.0.0.1:18931/items", "1 threads and 16 connections, 2s", 2338.1, 245),
    "peers/wrk2.txt": ("wrk2", "http://127.0.0.1:18090/path0", "1 threads and 16 connections, 12s", 997.42, 0),
    "results/hey.txt": ("hey", "", "", 5076 / 2.0071, 0),
    "results/hey-0.1.4.txt": ("hey", "", "", 5372 / 2.0065, 0),
    "peers/h2load.txt": ("h2load", "", "16 clients, 2s, http/1.1", 992.0, 0),
    "results/h2load.txt": ("h2load", "", "8 clients, 2000 requests, http/1.1", 1015.86, 0),
    "peers/oha.json": ("oha", "", "", 1000.2758662910124, 0),
    "peers/vegeta.json": ("vegeta", "", "about 500/s for 2 s", 499.2910162434636, 0),
    "peers/k6.json": ("k6", "", "2 s", 997.8, 0),
    "results/k6-summary.json": ("k6", "", "", 297.46723736774334, 0),
    "results/k6-samples.json": ("k6", "http://127.0.0.1:18931/items", "", 5 / 0.022711, 0),
    "results/load.json": (
        "redline",
        "http://127.0.0.1:18931/items",
        "open, 500/s poisson, 64 connections, 2s",
        489.5,
        0,
    ),
    "report.json": ("redline", "rust.hyper.SimpleGet.saturate", "closed, 64 users, 1s", 96_000, 0),
}


@pytest.mark.parametrize("status", ["201", "204", "302"])
@pytest.mark.parametrize(("name", "key"), [("oha", "statusCodeDistribution"), ("vegeta", "status_codes")])
def test_right_answers_have_any_status_below_400(tmp_path: Path, name: str, key: str, status: str) -> None:
    made = json.loads((PEERS / f"{name}.json").read_bytes())
    (tmp_path / "other.json").write_text(json.dumps(made | {key: {status: 7, "404": 3}}))
    assert read_results(tmp_path / "other.json")[0].requests == 7


def test_wrong_answers_are_not_among_the_right_ones(tmp_path: Path) -> None:
    text = (RESULTS / "wrk-resets.txt").read_text()
    (tmp_path / "wrk.txt").write_text(text.replace("Requests/sec:", "  Non-2xx or 3xx responses: 44\nRequests/sec:"))
    (of_wrk,) = read_results(tmp_path / "wrk.txt")
    assert (of_wrk.requests, of_wrk.failed) == (4744 - 44, 245 + 44)
    summary = json.loads((PEERS / "k6.json").read_bytes())
    summary["metrics"]["http_req_failed"]["values"]["rate"] = 0.25
    (tmp_path / "k6.json").write_text(json.dumps(summary))
    (of_k6,) = read_results(tmp_path / "k6.json")
    assert (of_k6.requests, of_k6.failed) == (1500, 500)
    samples = (RESULTS / "k6-samples.json").read_text().splitlines(keepends=True)
    last = max(at for at, line in enumerate(samples) if '"Point"' in line and "http_req_failed" in line)
    samples[last] = samples[last].replace('"value":0', '"value":1')
    (tmp_path / "samples.json").write_text("".join(samples))
    (sampled,) = read_results(tmp_path / "samples.json")
    assert (sampled.requests, sampled.failed) == (5, 1)


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, args)])


@pytest.mark.parametrize("name", READ)
def test_what_a_tool_wrote_is_read(name: str) -> None:
    result = read_results(FOLDER / name)[0]
    tool, url, load, rate, failed = READ[name]
    assert (result.tool, result.url, result.load, result.failed) == (tool, url, load, failed)
    assert result.rate_per_s == pytest.approx(rate, rel=2e-3)
    assert [point.q for point in result.response][-1] == 1.0
    times = [point.ns for point in result.response]
    assert times == sorted(times)
    assert result.unsaid


def test_every_sample_counts() -> None:
    (result,) = read_results(RESULTS / "k6-samples.json")
    values = [
        sample["data"]["value"]
        for text in (RESULTS / "k6-samples.json").read_text().splitlines()
        if (sample := json.loads(text))["type"] == "Point" and sample["metric"] == "http_req_duration"
    ]
    assert result.requests == len(values) == 6
    assert result.response[-1].ns == pytest.approx(max(values) * 1e6, rel=1e-3)
    assert result.started_unix_ns == 1795699952798004000


def test_the_second_distribution_of_wrk2_is_not_taken_for_the_first() -> None:
    text = (PEERS / "wrk2.txt").read_text()
    uncorrected = (
        "  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts"
        " into account))\n 50.000%    1.00us\n 99.000%    2.00us\n"
    )
    head, cut, tail = text.partition("----------------------------------------------------------")
    assert cut
    output = wrk.read(f"{head}{uncorrected}{cut}{tail}")
    assert output.latencies_ns[0.5] == pytest.approx(5.72e6)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        ((RESULTS / "k6.txt").read_bytes(), "holds no result that Redline knows"),
        ((RESULTS / "hey-refused.txt").read_bytes(), "has no rate and no times"),
        ((PEERS / "wrk.txt").read_bytes() * 2, "holds 2 results of wrk"),
        ((RESULTS / "hey.txt").read_bytes() * 3, "holds 3 results of hey"),
        ((PEERS / "oha.json").read_bytes() * 2, "holds 2 results of oha"),
        ((RESULTS / "k6-samples.json").read_bytes() + b'{"type": "Po\n', "line 92 is no sample of k6"),
        (gzip.compress((PEERS / "oha.json").read_bytes(), mtime=0)[:100], "is damaged: "),
        (b'{"format": "redline.report/1", "cells": []}', "has no rate and no times"),
        (b'{"latencyPercentiles": 3, "statusCodeDistribution": []}', "has no rate and no times"),
    ],
)
def test_a_file_that_says_nothing_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "result"
    file.write_bytes(content)
    with pytest.raises(NotStoredError, match=says) as raised:
        read_results(file)
    assert str(file) in raised.value.message


def test_gzip_is_read(tmp_path: Path) -> None:
    file = tmp_path / "oha.json.gz"
    file.write_bytes(gzip.compress((PEERS / "oha.json").read_bytes()))
    assert read_results(file)[0].requests == read_results(PEERS / "oha.json")[0].requests


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is not a regular file"):
        read_results(tmp_path / "pipe")
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        read_results(tmp_path / "missing")


def test_an_invalid_load_has_no_numbers(tmp_path: Path) -> None:
    document = json.loads((RESULTS / "load.json").read_text())
    (tmp_path / "load.json").write_text(json.dumps(document | {"valid": False}))
    with pytest.raises(NotStoredError, match="has no rate and no times"):
        read_results(tmp_path / "load.json")


WHOLE = [file.read_bytes() for file in (*PEERS.iterdir(), *RESULTS.iterdir())]


@settings(deadline=None)
@given(
    content=st.binary(max_size=300) | st.sampled_from(WHOLE),
    changes=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=9)), max_size=6),
)
def test_whatever_a_file_holds_is_read_or_refused(
    content: bytes, changes: list[tuple[float, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    for place, written in changes:
        at = int(place * len(content))
        content = content[:at] + written + content[at + len(written) * (len(written) % 2) :]
    file = tmp_path_factory.getbasetemp() / "fuzzed"
    file.write_bytes(content)
    try:
        results = read_results(file)
    except RedlineError:
        return
    for result in results:
        OtherResult.model_validate_json(result.model_dump_json())
        assert all(point.ns >= 0 and 0 <= point.q <= 1 for point in result.response)


def test_lines_are_of_one_tool_url_and_load() -> None:
    def result(file: str, **changes: object) -> OtherResult:
        given = {"file": file, "tool": "oha", "url": "", "load": "", "started_unix_ns": None, "rate_per_s": 1.0}
        rest = {"requests": None, "failed": None, "response": (), "unsaid": ()}
        return OtherResult.model_validate(given | rest | changes)

    lines = lines_of(
        [
            result("items/1.json"),
            result("home/1.json"),
            result("items/2.json"),
            result("x/a", tool="wrk", url="http://a/", load="c16"),
            result("y/b", tool="wrk", url="http://a/", load="c16"),
            result("y/c", tool="wrk", url="http://a/", load="c32"),
            result("v/late", tool="vegeta", started_unix_ns=20),
            result("v/early", tool="vegeta", started_unix_ns=10),
        ]
    )
    assert [[own.file for own in line.results] for line in lines] == [
        ["items/1.json", "items/2.json"],
        ["home/1.json"],
        ["x/a", "y/b"],
        ["y/c"],
        ["v/early", "v/late"],
    ]
    assert [line.dated for line in lines] == [False, False, False, False, True]
    assert [line.folder for line in lines] == ["items", "home", "", "", "v"]


def test_results_of_other_tools_stand_beside_the_runs(tmp_path: Path) -> None:
    for place in range(2):
        stored_run(tmp_path / "runs", place)
    done = redline("history", tmp_path / "runs", PEERS / "wrk.txt", RESULTS / "wrk-resets.txt", PEERS / "vegeta.json")
    assert done.exit_code == 0, done.output
    assert "2 runs below" in done.stdout
    assert "wrk http://127.0.0.1:18090/path0" in done.stdout
    assert "there is no interval, and nothing here is called" in done.stdout
    assert "vegeta does not say the URL" in done.stdout
    refused = redline("history", tmp_path / "runs", tmp_path / "runs").exception
    assert str(refused).endswith("hint: name the folder above them: runs are read at any depth")


def test_nothing_is_judged_by_results_of_other_tools() -> None:
    assert redline("history", PEERS / "wrk.txt").exit_code == 0
    done = redline("history", PEERS / "wrk.txt", "--fail-on", "regression")
    assert "a result of another tool is a single run, without an interval" in str(done.exception)
    assert "run below" not in done.stdout


def test_report_shows_a_result_of_another_tool(tmp_path: Path) -> None:
    done = redline("report", PEERS / "wrk2.txt")
    assert done.exit_code == 0
    assert "p99.9" in done.stdout
    assert "wrk2 does not say the requested rate" in done.stdout
    refused = redline("report", PEERS / "wrk2.txt", "--format", "csv").exception
    assert str(refused).startswith(f"{PEERS / 'wrk2.txt'} is a result of wrk2, which has no report as csv")
    (tmp_path / "notes").write_text("nothing")
    refused = redline("report", tmp_path / "notes").exception
    assert isinstance(refused, NotStoredError)
    assert str(refused).startswith(f"{tmp_path / 'notes'} holds no result that Redline knows\n")
    assert "wrk, wrk2, hey and h2load" in refused.hint
    assert "results.json" in refused.hint


def test_options_that_say_nothing_are_refused(tmp_path: Path) -> None:
    stored_run(tmp_path, 0)
    for words, says in {
        ("compare", tmp_path / "run-00", "--anyway"): "--anyway is about two runs",
        ("history", tmp_path, "--recent", "2"): "--recent says which regressions fail, and none does",
        ("history", PEERS / "wrk.txt", "-s", "x"): "-s and -m select cells of runs, and there are only files",
    }.items():
        refused = redline(*words).exception
        assert isinstance(refused, UsageError)
        assert refused.message == says


def test_a_report_is_not_written_over_what_it_is_made_of(tmp_path: Path) -> None:
    stored_run(tmp_path, 0)
    run, other = tmp_path / "run-00", tmp_path / "other.json"
    assert redline("report", run, "-o", other).exit_code == 0
    for file in (run / "run.json", next((run / "recordings").iterdir())):
        kept = file.read_bytes()
        refused = redline("report", run, "-o", file, "--format", "json").exception
        assert str(refused).startswith(f"{file} is what the report is made of")
        assert file.read_bytes() == kept
    assert str(redline("report", other, "-o", other).exception).startswith(f"{other} is what the report is made of")
    assert redline("report", run, "-o", run / "report.md").exit_code == 0
    assert redline("report", run, "-o", run / "report.md").exit_code == 0


def test_compare_refuses_files() -> None:
    refused = redline("compare", PEERS / "wrk.txt", PEERS / "oha.json").exception
    assert f"{PEERS / 'wrk.txt'} is a file: runs are compared by their trials" in str(refused)
