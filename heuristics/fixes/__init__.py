"""Fixes: a table a wall, in the order to try; what only code computes stands in files by
subject.
"""
