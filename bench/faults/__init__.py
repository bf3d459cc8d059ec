"""Runs that are disturbed: killed at random moments or at every step, eight at once, without room."""
