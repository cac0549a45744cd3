"""What a load asks of its users."""

from redline.model import Cell, Closed


def asks_at_once(cell: Cell) -> bool:
    """Whether users ask again as soon as they are answered, so that the rate is what server and client can do."""
    shape = cell.load.shape
    return isinstance(shape, Closed) and shape.think is None and shape.pace_per_s is None
