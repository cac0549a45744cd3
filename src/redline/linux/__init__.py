"""Thin readers of what Linux reports about processes, control groups and the machine."""
