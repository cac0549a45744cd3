"""What takes CPU when it is first needed, done before a load that should not feel it."""

from importlib import import_module


def load_what_judges() -> None:
    """Import what judging needs, whether a server is warm included; commands that load nothing start without it."""
    for name in ("scipy.stats", "scipy.ndimage", "ruptures"):
        import_module(name)
