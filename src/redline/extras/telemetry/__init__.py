"""What a load shows of itself while it runs, to tools that watch it."""
