"""A run as opinions see it: what its trace shows, and what was given."""
