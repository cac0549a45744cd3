"""What a run recorded, for other programs."""

from redline.analysis.distributions import recorded_profiles
from tests.unit.profiles.test_why import SAMPLES, sampled_run


def test_the_profiles_of_sampled_starts_are_those_of_their_servers() -> None:
    run = sampled_run()
    made = {profile.name: profile.stacks.total for profile in recorded_profiles(run)}
    assert made == {"A.home.load.cpu": 2 * SAMPLES * len(run.sampled), "B.home.load.cpu": SAMPLES * len(run.sampled)}
