"""What is no core: each folder stands behind an entry point, and is loaded by name when it is asked for."""
