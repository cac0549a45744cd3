"""The search for the breaking point: the next load to try, convergence, or failure with a reason. Pure."""

from redline.search.evidence import Evidence, ProbeSlice, growth, hopeless
from redline.search.search import Converged, Doomed, Exhausted, Limit, Proposal, Search, Settings
