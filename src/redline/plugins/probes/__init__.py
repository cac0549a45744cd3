"""What watches a trial."""
