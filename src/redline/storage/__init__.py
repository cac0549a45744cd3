"""Runs and searches on disk: atomic, append-only, versioned."""
