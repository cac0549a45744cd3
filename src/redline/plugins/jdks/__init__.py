"""JDKs: those of this machine, and runtimes that are fetched when it lacks a release."""
