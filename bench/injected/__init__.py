"""Recordings by others with one handicap of known size put in, by a reader and a graph of their own."""
