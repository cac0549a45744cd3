"""Launchers: build, start and stop servers, from commands, images, compose files and git revisions."""
