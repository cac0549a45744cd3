"""What a request costs Redline's engine and what it costs its peers, in alternating runs: `python -m bench.cost`."""
