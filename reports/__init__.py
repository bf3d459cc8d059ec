"""WORDS: one finished document in, text out. Computes nothing.

`result/` has the one codec of the document; `content/` fills pages of blocks, `write/` writes them.
"""
