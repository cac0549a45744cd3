"""Redline: a performance lab for HTTP servers whose numbers nobody has to doubt."""
