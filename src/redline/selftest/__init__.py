"""Redline held to known answers: `truth`, `cases` and `judge` are pure, the rest runs the cases."""
