"""What is said of one run, typed: every value a number, `Missing`, or None for what does not apply.

`reports/result` fills it and turns it into JSON and back; comparison, history and every writer take
it.
"""
