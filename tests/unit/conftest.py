"""Property tests are bounded in examples, never in time: a busy machine is no failure."""

from hypothesis import HealthCheck, settings

settings.register_profile("redline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("redline")
