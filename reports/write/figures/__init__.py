"""Figures, drawn with matplotlib: the same bytes for the same content, readable alone and without
colour.
"""

from traces.files.elsewhere import elsewhere

with elsewhere():  # matplotlib reads a file of the working folder
    import matplotlib  # noqa: F401
