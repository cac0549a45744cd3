"""Other load generators, asked the same: found on the PATH, called in their own way, told in their own words."""

from redline.peers.asking import ADAPTERS, Peer, ask, find_peer, find_peers

__all__ = ["ADAPTERS", "Peer", "ask", "find_peer", "find_peers"]
