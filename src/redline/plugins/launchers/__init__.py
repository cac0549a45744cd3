"""How servers are built, started and stopped."""
