"""What can explain a difference: what changed, held against the rows that moved, the likeliest first."""

from heuristics.comparison.suspects.find import can_explain, find_suspects
from heuristics.comparison.suspects.suspect import Suspect

__all__ = ["Suspect", "can_explain", "find_suspects"]
