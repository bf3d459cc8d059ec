"""Who makes ranks wait, and why: a file a cause, which proposes what to take away, and one
judge.
"""
