"""What a session is and where it came from, as its manifest says."""

import pytest

from redline.model.run import Kind
from redline.running.assembly import Workbench
from redline.running.manifests import Source, new_manifest
from tests.fakes.plugins import FakeDriver
from tests.fakes.recordings import simulated_environment, simulated_run
from tests.fakes.searched import CELL, plan_of
from tests.unit.running.test_record_failures import tools_of

PLAN = simulated_run(trials=1).manifest.plan
BENCH = Workbench(tools_of(FakeDriver([])), simulated_environment())


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_a_session_is_of_the_kind_of_its_source(kind: Kind) -> None:
    source = Source("redline run a.yaml", "a.yaml", "name: a", kind)
    made = new_manifest("one", source, PLAN, BENCH)
    assert (made.kind, made.name, made.search, made.plan) == (kind, "one", None, PLAN)
    assert (made.command, made.suite_file, made.suite_text) == ("redline run a.yaml", "a.yaml", "name: a")
    assert made.environment == simulated_environment()
    assert Source("redline run").kind == "run"


def test_what_has_terms_of_a_search_is_a_search() -> None:
    terms = plan_of(CELL).terms
    made = new_manifest("one", Source("redline limit URL"), PLAN, BENCH, terms)
    assert (made.kind, made.search) == ("search", terms)
