"""Which cells a suite asks for and this machine did not run, as where a server cannot be built. Pure."""

from collections.abc import Mapping

from redline.model import Plan, Suite
from redline.suite import make_capacity_plan, make_plan


def skipped_here(plan: Plan) -> Mapping[str, str]:
    """The reason by the cell's slug; not those that the suite rules out itself, as a scenario that a variant lacks."""
    ruled_out = _ruled_out(plan.suite) if plan.skipped else frozenset()
    return {skipped.slug: skipped.reason for skipped in plan.skipped if skipped.slug not in ruled_out}


def _ruled_out(suite: Suite) -> frozenset[str]:
    once = suite.model_copy(update={"trials": 1})
    return frozenset(skipped.slug for made in (make_plan(once), make_capacity_plan(once)) for skipped in made.skipped)
