"""Judging a difference: are two runs comparable, is it real, what can explain it."""
