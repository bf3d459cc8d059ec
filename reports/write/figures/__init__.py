"""Figures, drawn with matplotlib: the same bytes for the same content, readable alone and without colour."""
