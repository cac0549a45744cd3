"""Other load generators, for `redline selftest --peers` and `bench`: how each is called, and how its output is read."""

from redline.peers.adapters import ADAPTERS, PeerAdapter, PeerLoad, PeerOutput
from redline.peers.calling import Peer, find_peer, find_peers, run_peer
