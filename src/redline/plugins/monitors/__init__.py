"""Monitors, which watch a trial."""
