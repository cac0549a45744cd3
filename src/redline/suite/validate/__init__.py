"""What it means: defaults, overrides and references resolved, and every problem of a file at once."""
