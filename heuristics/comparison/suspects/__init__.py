"""What can explain a difference: what changed, held against the rows that moved, the likeliest first."""

from heuristics.comparison.suspects.find import can_explain, find_suspects

__all__ = ["can_explain", "find_suspects"]
