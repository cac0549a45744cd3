"""The search for the breaking point: next load to try, converged, or doomed with a reason. Pure."""

from redline.search.ends import Converged, Doomed, Exhausted, Limit, Proposal, Settings
from redline.search.evidence import Evidence, Slice
from redline.search.growth import growth, hopeless
from redline.search.search import Search

__all__ = [
    "Converged",
    "Doomed",
    "Evidence",
    "Exhausted",
    "Limit",
    "Proposal",
    "Search",
    "Settings",
    "Slice",
    "growth",
    "hopeless",
]
