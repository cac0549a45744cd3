"""Validate suites: resolve defaults, overrides and references, and report every problem of a file at once."""
