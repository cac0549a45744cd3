"""Readers of what load generators print: pure, and never failing on odd output; `formats` tells them apart."""
