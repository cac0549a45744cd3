"""Reports as sections: which tables, sentences and findings are shown of a run, a search and a history."""
