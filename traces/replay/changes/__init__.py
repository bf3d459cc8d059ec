"""Fixes as edits of the replay graph: what a change would give, from a pessimistic replay to a
ceiling.
"""
