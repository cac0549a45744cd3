"""Execute plans and searches: trials, probes, sessions, and the tools that they run with."""
