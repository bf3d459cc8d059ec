"""What a configuration asks for, what the log accepts and what the trace shows: where they
disagree.
"""
