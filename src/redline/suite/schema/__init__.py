"""What people write: the YAML files and their fields, as pydantic models."""
