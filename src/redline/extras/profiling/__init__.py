"""Profilers, which sample the stacks of a server or of the load engine."""
