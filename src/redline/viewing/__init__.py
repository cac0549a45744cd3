"""Runs of some folders as pages, served to a browser on this machine: nothing is written, and nothing loaded."""
