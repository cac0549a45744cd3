"""Thin readers of what Linux tells about processes, control groups and the machine."""
