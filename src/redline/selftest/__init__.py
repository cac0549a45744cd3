"""Redline held to known answers: `truth`, `chance`, `arrivals` and `judge` are pure, the rest runs the cases."""
