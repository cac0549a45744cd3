"""Trials on several hosts: an agent on every host, and the launcher, driver and monitors that talk to it."""
