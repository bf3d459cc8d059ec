"""Whose words a kept result has: ours are known by our tables, and what is not ours is not shown as
such.

A result comes from a file that anybody may have edited. Each of its texts has a kind by its type,
as `traces/texts.py` lists them, and each kind is asked something else: a sentence whether we say it
(`book.py`), a line to type whether it is made of our settings (`lines.py`), a name whether it may
be told.
"""
