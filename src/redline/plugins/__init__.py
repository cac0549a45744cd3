"""The world: what stands behind the ports."""
