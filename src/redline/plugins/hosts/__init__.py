"""Trials on several hosts: an agent on each, and the launcher, driver and probes that talk to it."""
