"""Other load generators, for `--like`, `selftest --peers` and `bench`: their command lines and outputs."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.extras.peers.adapters import ADAPTERS, PeerAdapter, PeerLoad
    from redline.extras.peers.calling import Peer, find_peer, find_peers, run_peer
    from redline.extras.peers.outputs.reading import PeerOutput
else:
    __getattr__ = offered(__name__)
