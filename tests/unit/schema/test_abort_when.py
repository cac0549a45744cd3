"""Loads that end early because a condition held for a time: what is written, when it holds, and what is kept."""

import re
import subprocess
from dataclasses import replace

import pytest

from redline.analysis.load_result import load_result
from redline.cli import exits
from redline.cli.commands.load import exit_code
from redline.errors import UsageError, WrongValueError
from redline.limits.search_state import SearchState
from redline.model.search import ProbeRecording
from redline.report.load import load_section
from redline.running.aborting import RequestedAbort
from redline.schema.abort_when import parse_abort_rule
from redline.search import Proposal
from redline.search.steps import state_of
from redline.suite import Catalogue, Overrides, read_suite
from tests.fakes.behaviour import GOOD
from tests.fakes.loads import load_of
from tests.fakes.probed import ScriptedDriver, cell, prober
from tests.fakes.probed import interval as probed
from tests.fakes.recordings import simulated_recording
from tests.fakes.searched import CELL, plan_of
from tests.unit.report.test_load import shown
from tests.unit.stats.test_abort import interval


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("errors > 5%", "does not say for how long"),
        ("errors < 5% for 3s", "above a limit"),
        ("erors > 5% for 3s", "`erors` is not a metric"),
        ("errors > 100% for 3s", "can never be"),
        ("errors > 5% for 0s", "at once"),
        ("often", "does not say when to abort"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(WrongValueError, match=re.escape(says)):
        parse_abort_rule(text)


def test_what_was_measured_is_kept_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda *_: None)
    abort = RequestedAbort([parse_abort_rule("errors > 5% for 1s")])
    abort.started(1)
    for at in range(2):
        abort.seen(interval(at, failed=10))
    loaded = cell()
    recording = simulated_recording(loaded, GOOD)
    assert recording.traffic is not None
    traffic, failure = abort.ended(recording.traffic)
    assert failure is None
    assert (traffic.ended, traffic.counts) == ("aborted", recording.traffic.counts)
    judged = load_of(loaded, recording.model_copy(update={"traffic": traffic}))
    assert exit_code(load_result(judged)) == exits.MISSED
    text = " ".join(" ".join(shown(load_section(judged))).split())
    assert "aborted by errors > 5% for 1s: 9.1% of 220 requests failed" in text
    assert "(aborted)" in text


def test_a_comparison_in_duets_refuses_a_percentile_by_name() -> None:
    text = (
        "servers: [{name: a, url: 'http://127.0.0.1:1'}, {name: b, url: 'http://127.0.0.1:2'}]\nbaseline: a\n"
        "scenarios: [{name: get, get: /}]\nloads: {some: {closed: {users: 2}, for: 3s}}\n"
    )
    for more in ("budget: 60s\n", "design: duet\n"):
        with pytest.raises(UsageError, match="`p99 > 1s for 2s`: servers are compared in duets"):
            read_suite(f"{text}{more}abort_when: p99 > 1s for 2s\n", "f.yaml", Catalogue(), Overrides())
        suite = read_suite(f"{text}{more}abort_when: errors > 5% for 2s\n", "f.yaml", Catalogue(), Overrides())
        assert [rule.text for rule in suite.abort_when] == ["errors > 5% for 2s"]
    assert read_suite(
        f"{text}design: interleaved\nabort_when: p99 > 1s for 2s\n", "f.yaml", Catalogue(), Overrides()
    ).abort_when


def test_a_condition_that_no_load_is_long_enough_for_is_refused() -> None:
    text = (
        "servers: [{name: a, url: 'http://127.0.0.1:1'}]\nscenarios: [{name: get, get: /}]\n"
        "loads: {short: {closed: {users: 2}, for: 1s}, long: {closed: {users: 2}, for: 3s}}\nabort_when: "
    )
    assert read_suite(f"{text}p99 > 1s for 3s\n", "f.yaml", Catalogue(), Overrides()).abort_when
    with pytest.raises(UsageError, match=r"f.yaml:4:13: abort_when: `p99 > 1s for 4s` cannot end a load of 3.00 s"):
        read_suite(f"{text}[errors > 5% for 1s, p99 > 1s for 4s]\n", "f.yaml", Catalogue(), Overrides())


def aborted_probe(engine: subprocess.Popen[bytes]) -> ProbeRecording:
    """A probe of 1,000/s, of whose requests 4% fail, which the user's condition does not allow."""
    driver = ScriptedDriver([probed(at, due=100, done=96, errors=4) for at in range(20)], "interrupted", engine.pid)
    made = prober(driver)
    made.cell = ABORTING
    return made.probe(Proposal(1000, ""), "search")


ABORTING = cell().model_copy(update={"abort_when": (parse_abort_rule("errors > 3% for 1s"),)})


def test_a_probe_ends_by_it_and_its_rate_is_too_high() -> None:
    with subprocess.Popen(["sleep", "30"]) as engine:
        made = aborted_probe(engine)
        assert engine.wait(10) != 0
    assert made.recording.traffic is not None
    assert (made.recording.traffic.ended, made.cut) == ("aborted", False)
    state = SearchState(plan_of(ABORTING), ABORTING)
    evidence = state.add(made)
    assert evidence is not None
    assert not evidence.hopeless
    (conditions,) = state.sets.values()
    assert [condition.text for condition in conditions][-1] == "never errors > 3% for 1s"
    assert state_of((evidence,), conditions[-1]) == "missed"
    (said,) = state.probes[0].counts
    assert (said.state, said.why) == ("missed", evidence.aborted)
    assert evidence.aborted.startswith("errors > 3% for 1s: 4% of 1,200 requests failed in 1")
    passed = replace(evidence, aborted="", rate_per_s=500)
    assert state_of((passed,), conditions[-1]) == "met"


def test_the_warm_up_of_a_search_goes_on() -> None:
    driver = ScriptedDriver([], "complete", 1)
    made = prober(driver)
    made.cell = ABORTING
    list(made.warm(lambda: 100))
    assert [drive.cell.abort_when for drive in driver.drives] == [(), ()]


def test_a_search_that_aborts_makes_no_overload_test() -> None:
    started = CELL.model_copy(update={"abort_when": ABORTING.abort_when})
    manifest = plan_of(started)
    terms = manifest.terms.model_copy(update={"beyond": True})
    state = SearchState(manifest.model_copy(update={"search": terms}), started)
    assert "abort_when" in str(state.overload_wanted())
