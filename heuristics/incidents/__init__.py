"""Published hangs, crashes, regressions and wrong results: tables of rows, and what a run meets of
them.
"""
