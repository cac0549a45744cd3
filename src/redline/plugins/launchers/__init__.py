"""Build, start and stop servers."""
