"""Trials on several hosts: an agent on each, and the launcher, driver and monitors that talk to it."""
