"""The step as a graph that can be run again with something taken away: what it would win."""
