"""Blocks as bytes: one writer a format. A writer knows how a block looks, never what it says."""
