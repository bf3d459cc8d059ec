"""Who recorded a trace, by its kind, and what none of its recordings holds: asked where they
differ.
"""

from typing import Final

from traces.frozen import frozen


@frozen
class Recorder:
    """A program that records; `never`: rows of `Capture`, and "version", that its traces do not
    have. `tells_world`: a trace of one of several ranks says of how many.
    """

    name: str
    never: frozenset[str] = frozenset()
    tells_world: bool = False


NSYS: Final = Recorder("nsys")
TORCH: Final = Recorder(
    "PyTorch profiler",
    frozenset({"OS calls", "GPU counter samples", "graph replays", "version"}),
    tells_world=True,
)
_OF_KIND: Final = {"nsys-sqlite": NSYS, "nsys-report": NSYS, "kineto": TORCH}


def recorded_by(kind: str) -> Recorder:
    """Who recorded a trace of this kind (`traces[].kind`); one that we do not know may hold
    anything.
    """
    return _OF_KIND.get(kind, Recorder(kind))
