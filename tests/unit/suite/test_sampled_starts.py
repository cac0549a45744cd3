"""`why` in a suite plans sampled starts after the duets, or says why there are none."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.model import Plan
from redline.suite import expected_length_ns, make_plan, with_rounds, without_profiles
from tests.fakes.catalogues import SUITE, suite_of

TEXT = f"{SUITE}  steady: {{open: {{rate: 100}}, for: 2s}}\nbaseline: fam.plain\ntrials: 3\n"


def plan_of(folder: Path, more: str = "why: true\n") -> Plan:
    return make_plan(suite_of(folder, TEXT + more))


def test_every_duet_has_sampled_starts_after_all_else(tmp_path: Path) -> None:
    plain, plan = plan_of(tmp_path, ""), plan_of(tmp_path)
    assert plan.steps == plain.steps
    assert {duet.cell_ids for duet in plan.sampled} == {duet.cell_ids for duet in plan.duets}
    assert {duet.profile for duet in plan.sampled} == {"cpu"}
    positions = [duet.position for duet in plan.sampled]
    assert positions == list(range(plain.length, plan.length))
    assert expected_length_ns(plan) > expected_length_ns(plain)


def test_further_rounds_come_behind_the_sampled_starts(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    longer = with_rounds(plan, 5)
    assert longer.sampled == plan.sampled
    positions = [step.position for step in (*longer.steps, *longer.sampled)]
    assert len({*positions}) == len(positions) == longer.length


def test_a_machine_without_the_profiler_has_none_and_the_reason(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    slug = plan.cells[plan.duets[0].cell_ids[1]].variant.slug
    made = without_profiles(plan, {(slug, "cpu"): "perf is not installed"})
    assert all(plan.cells[cell_id].variant.slug != slug for duet in made.sampled for cell_id in duet.cell_ids)
    assert [(skipped.slug, skipped.reason) for skipped in made.unprofiled] == [
        (f"{slug}: cpu", "perf is not installed")
    ]
    assert made.steps == plan.steps


def test_why_is_about_duets(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`why` is about the servers of a duet"):
        suite_of(tmp_path, f"{TEXT}why: true\ndesign: interleaved\n")
