"""JDKs: those of this machine, and runtimes that are fetched when it has none of the release that is asked for."""
