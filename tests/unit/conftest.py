"""Property tests are bounded in examples, never in time: a busy machine is no failure."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("redline", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("redline"), max_examples=100)
settings.load_profile("redline")

# What tests write need not outlast a power failure. Tests of a disk that refuses replace this.
os.fsync = lambda fd: None
