"""Drivers: Scenario + Load -> Traffic."""
