"""Profilers: what samples the stacks of a server, or of the load engine, while it is measured."""
