"""Where CPU time goes, and why compared servers differ: profiles, functions, libraries, counters. Pure."""
