"""Whose time it is: an address for every nanosecond that waits for the host, and for the GPU's own
time.

An address is what was recorded of the thread at that instant: the innermost function of the
program, the operator, the range, the call of the operating system. They add up to the integer.
"""
