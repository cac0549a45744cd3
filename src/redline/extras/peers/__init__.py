"""Other load generators, for `--like`, `selftest --peers` and `bench`: their command lines and outputs."""

from redline.extras.peers.adapters import ADAPTERS, PeerAdapter, PeerLoad
from redline.extras.peers.calling import Peer, find_peer, find_peers, run_peer
from redline.extras.peers.outputs.reading import PeerOutput
