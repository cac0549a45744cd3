"""Findings about duets of servers whose listen queue is short."""

from redline.findings.duet import SeenDuet
from redline.findings.rules import HOLDS, Observation, Rule


@Rule("short-queue", when="duet", warn=0.0)
def short_queue(duet: SeenDuet) -> Observation | None:
    """The servers were loaded by fewer users than asked: each request opens a connection, and a listen queue is short.

    The kernel drops connections that the queue has no room for. Their users would try again after a second, in which
    many slices pass.

    Advice: Let the server keep connections, or listen with a longer queue, to have all users. Or ask for as few.
    """
    users = [start.users for start in duet.starts if start.users is not None]
    if not users:
        return None
    message = (
        f"{min(users)} users loaded each server: connections are opened for each request, and a listen queue has room "
        "for no more."
    )
    return Observation(HOLDS, message)
