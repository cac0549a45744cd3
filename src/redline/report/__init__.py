"""What is shown: numbers and loads in words, and the renderers that turn a report into bytes."""
