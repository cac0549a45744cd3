"""Reports for people and programs: numbers and loads in words, and renderers that turn a report into bytes."""
