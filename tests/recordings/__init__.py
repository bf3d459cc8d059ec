"""Recordings made up for tests: event by event, by a pattern or at random, and stand-ins for their tools."""
