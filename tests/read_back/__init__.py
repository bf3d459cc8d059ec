"""Readers of what the program writes: a browser, a terminal, grammars, and text as readers get it."""
