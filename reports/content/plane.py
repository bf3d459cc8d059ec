"""A curve for what can draw: lines and named places between two axes."""

from traces.frozen import frozen


@frozen
class Dot:
    """A named place on a plane."""

    at: tuple[float, float]
    text: str


@frozen
class Plane:
    """Lines and dots; a point is parts of the width and the height, from the lower left.

    `across` and `up` say what the axes are. `filled`: what is below a line is as much of it.
    """

    lines: tuple[tuple[tuple[float, float], ...], ...]
    across: str
    up: str
    dots: tuple[Dot, ...] = ()
    filled: bool = False
