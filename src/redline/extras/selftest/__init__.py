"""The selftest: measures cases with known answers. `truth`, `cases` and `judge` are pure."""
