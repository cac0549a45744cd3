"""Read the outputs of load generators: pure, and never failing on odd output; `formats` tells them apart."""
