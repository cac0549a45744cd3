"""Searches judged: limits, their doubts and ratios, and the state of a search between its probes. Pure."""
