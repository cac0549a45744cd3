"""Small servers that behave, or misbehave in a single way; plain scripts of the standard library."""
