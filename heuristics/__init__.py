"""OPINIONS: what the measurements mean. Reads measurements and configuration; no I/O, no pages.

`judgement.judge` is the one entry (`judge_observed` without a trace). Imports `traces` only.
"""
