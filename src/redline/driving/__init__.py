"""The process of the load engine: scenario and load become traffic, and single requests become answers."""
