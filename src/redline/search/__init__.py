"""The search for the breaking point: next load to try, converged, or doomed with a reason. Pure."""

from redline.search.evidence import Evidence, ProbeSlice, growth, hopeless
from redline.search.search import Converged, Doomed, Exhausted, Limit, Proposal, Search, Settings
