"""A server that answers nothing has no percentiles and no rate: no view shows them as 0."""

import csv
import io
import json
from dataclasses import replace

from rich.console import Console

from redline.analysis import build_report
from redline.cli.session_view import TrialsView
from redline.model import Counts, Histogram, Metric, Outcomes, Recording, Run
from redline.model.failures import FirstFailure
from redline.render import RENDERERS
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_run

SERVERS = {"rust.hyper": GOOD, "rust.axum": GOOD}
NOTHING = Histogram.of([])


def silent(recording: Recording) -> Recording:
    """The same, as if no request had been answered."""
    assert recording.traffic is not None
    counts = Counts(due=500, outcomes=Outcomes(connect=500))
    intervals = tuple(
        each.model_copy(update={"counts": Counts(), "response": NOTHING}) for each in recording.traffic.intervals
    )
    emptied = {"counts": counts, "response": NOTHING, "service": NOTHING, "intervals": intervals}
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=emptied)})


def run() -> Run:
    made = simulated_run(SERVERS, loads=(SATURATE,))
    recordings = [silent(each) if each.cell_id.startswith("rust.axum") else each for each in made.recordings]
    return made.model_copy(update={"recordings": tuple(recordings)})


def test_no_view_has_a_rate_or_a_percentile_of_it() -> None:
    report = build_report(run())
    (cell,) = (each for each in report.cells if each.server == "rust.axum")
    assert not cell.valid
    assert Metric.P99 not in cell.estimates
    assert {(each.rate_per_s, each.p50_ns, each.p99_ns) for each in cell.trials} == {(None, None, None)}
    said = json.loads(RENDERERS["json"](report))
    shown = next(each for each in said["cells"] if each["server"] == "rust.axum")
    assert all(trial["rate_per_s"] is trial["p99_ns"] is None for trial in shown["trials"])
    rows = [
        row for row in csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode())) if row["server"] == cell.server
    ]
    assert rows
    assert not any(row["value"] for row in rows)
    for form in ("md", "html"):
        assert "0 ns" not in RENDERERS[form](report).decode()
    assert RENDERERS["html"](report).decode().count("no answers") >= len(cell.trials)


def test_every_view_names_the_first_failure() -> None:
    failure = FirstFailure(outcome="timeout", reason="no answer within 5 s", time_ns=1)
    made = simulated_run({"rust.hyper": replace(GOOD, outcomes={"timeout": 40})}, loads=(SATURATE,))
    recordings = []
    for each in made.recordings:
        assert each.traffic is not None
        traffic = each.traffic.model_copy(update={"failures": (failure,)})
        recordings.append(each.model_copy(update={"traffic": traffic}))
    report = build_report(made.model_copy(update={"recordings": tuple(recordings)}))
    for form in ("md", "html", "json"):
        assert "timeout: no answer within 5 s" in RENDERERS[form](report).decode(), form
    assert '"reason":"no answer within 5 s"' in RENDERERS["json"](report).decode().replace(": ", ":")


def test_the_line_of_a_trial_says_so() -> None:
    made, console = run(), Console(file=io.StringIO(), width=200)
    view = TrialsView(made.manifest.plan, 0, console)
    for recording in made.recordings:
        view.trial_ended(recording, made.manifest.plan.cells[recording.cell_id])
    assert isinstance(console.file, io.StringIO)
    lines = [line for line in console.file.getvalue().splitlines() if "rust.axum" in line]
    assert lines
    assert all("no answers" in line for line in lines)
    assert "0 ns" not in console.file.getvalue()
