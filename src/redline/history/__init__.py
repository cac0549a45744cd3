"""Since when: the history of cells over stored runs, and the search for the commit that changed them."""
