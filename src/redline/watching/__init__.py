"""Monitors, which watch a trial, and the facts of the machine."""
