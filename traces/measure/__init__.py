"""Timeline -> Measurements: every number, each with its unit in its name. One file per family of
numbers.
"""
