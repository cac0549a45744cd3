"""The search for the breaking point: the next load to try, convergence, or failure with a reason. Pure."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.search.evidence import Evidence, ProbeSlice, growth, hopeless
    from redline.search.search import Converged, Doomed, Exhausted, Limit, Proposal, Search, Settings
else:
    __getattr__ = offered(__name__)
