"""Settings of every unit test."""

from hypothesis import HealthCheck, settings

# A deadline measures the machine, which may run many tests at once; pytest's own timeout stays.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
