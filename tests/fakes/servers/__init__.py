"""Small servers that behave, or misbehave in one way each; plain scripts of the standard library."""
