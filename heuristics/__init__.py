"""OPINIONS: what the measurements mean. Reads measurements and configuration; no I/O, no formatting.

`judge` is the one entry. Imports `traces` only.
"""

from heuristics.judgement import Judgement, judge

__all__ = ["Judgement", "judge"]
