"""FACTS: what the recording holds. No thresholds of judgement, no adjectives, no formatting.

Imports no sibling package. Importing this package alone loads nothing heavy.
"""
