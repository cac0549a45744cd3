"""The schemas of the YAML files that users write, as pydantic models."""
