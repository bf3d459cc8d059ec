"""A run as opinions see it: what its trace shows, what was given, and its files judged."""
