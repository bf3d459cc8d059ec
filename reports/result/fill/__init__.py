"""Measurements and judgement -> typed result, a file a section. What could not be told is `Missing`
there.
"""
