"""What requests of several kinds cost the client, beside other load generators: `python -m bench.traffic`."""
