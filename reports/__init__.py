"""WORDS: one finished document in, text out. Computes nothing.

`document` builds the plain dict and is the only owner of its version; every other file renders it.
"""
