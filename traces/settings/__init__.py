"""A run's configuration as facts: what a file, a command line or a log says, under one name for
each knob.
"""
