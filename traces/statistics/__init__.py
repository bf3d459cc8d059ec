"""Intervals, tests and trends of few and many values: whoever judges a difference asks here."""
