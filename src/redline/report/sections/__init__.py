"""Reports as sections: the tables, sentences and findings of a run, a search and a history."""
