"""What each communication kernel is for: one file per kind of evidence, `kinds.py` puts them
together.
"""
