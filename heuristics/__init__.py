"""OPINIONS: what the measurements mean. Reads measurements and configuration; no I/O, no formatting.

`judge` is the one entry (`judge_observed` without a trace). Imports `traces` only.
"""

from heuristics.judgement import Configured, Judgement, judge, judge_observed

__all__ = ["Configured", "Judgement", "judge", "judge_observed"]
