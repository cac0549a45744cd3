"""Execute plans and searches: trials, probes, sessions, and the plugins that they run with."""
