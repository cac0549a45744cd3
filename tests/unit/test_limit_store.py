"""The directory of a search: what was asked is written once, what was found again and again."""

from pathlib import Path

import pytest

from redline.errors import StoreError
from redline.model.limit_plan import LimitPlan
from redline.storage.runs import stored_json
from redline.storage.searches import LimitStore
from redline.suite import parse_objectives
from tests import golden
from tests.fakes import limits
from tests.fakes.recordings import STEADY, simulated_run


def plan() -> LimitPlan:
    """Of a simulated suite."""
    return LimitPlan(
        manifest=simulated_run(loads=(STEADY,), trials=2, ceiling=None).manifest,
        sets={"good": parse_objectives("p99 < 200ms, errors < 1%")},
        start_per_s=None,
        probes=12,
        precision=0.03,
        trials=2,
        beyond=True,
    )


def test_the_stored_form_stays_readable() -> None:
    golden.check("search.json", stored_json(plan()))
    assert LimitPlan.model_validate_json((golden.FOLDER / "search.json").read_bytes()) == plan()


def test_what_was_asked_and_found_reads_back(tmp_path: Path) -> None:
    store = LimitStore(tmp_path / "found")
    assert not store.there
    store.create(plan())
    assert store.there
    assert (store.plan(), store.report()) == (plan(), None)
    store.save(limits.by_hand())
    assert store.report() == limits.by_hand()
    with pytest.raises(StoreError, match="already holds a search"):
        store.create(plan())


def test_what_is_no_search_or_damaged_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no search"):
        LimitStore(tmp_path).plan()
    (tmp_path / "search.json").write_text('{"format": "redline.search/1"')
    with pytest.raises(StoreError, match=r"search\.json"):
        LimitStore(tmp_path).plan()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    store = LimitStore(tmp_path / "found")
    store.create(plan())
    with store.locked(), pytest.raises(StoreError, match="another redline"), LimitStore(store.folder).locked():
        pass
