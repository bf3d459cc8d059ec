"""What can explain a difference: what changed, held against the rows that moved, the likeliest
first.
"""
