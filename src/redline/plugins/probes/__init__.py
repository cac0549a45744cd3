"""Probes, which watch a trial."""
