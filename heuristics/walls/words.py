"""How opinions spell walls and shares in their sentences."""

from traces.sections.tables import WallId


def wall_words(wall: WallId) -> str:
    """A wall's name in a sentence."""
    return wall.replace("_", " ")


def percent(frac: float) -> str:
    """A share with one decimal."""
    return f"{frac * 100:.1f} %"


def overhead_words(wall: WallId) -> str:
    """What of a wall could be removed, in a sentence."""
    return wall_words(wall) if wall == "host_overhead" else f"{wall} overhead"
