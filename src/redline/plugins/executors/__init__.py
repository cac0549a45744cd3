"""Executors: where trials run."""
