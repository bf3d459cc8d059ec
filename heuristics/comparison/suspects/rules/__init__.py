"""Causes that we know the look of, one small file per family."""
