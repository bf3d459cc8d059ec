"""Figures, drawn with matplotlib: the same bytes for the same content, readable alone and without colour."""

from traces.elsewhere import elsewhere

with elsewhere():
    import matplotlib  # noqa: F401 - it reads its settings now
