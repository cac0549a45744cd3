"""What registries have that the catalogue has not: its build files read, and its registries asked."""
