"""Reports as sections: the tables, figures, sentences and findings of a run, a search and a history."""
