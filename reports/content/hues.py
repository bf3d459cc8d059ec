"""What a row of the step is drawn as, alike in every bar, table and picture."""

from typing import Final

from reports.content.blocks import Hue
from traces.sections.tables import WallId

PIECES: Final = (
    ("compute", "compute", Hue.COMPUTE),
    ("busy", "busy", Hue.COMPUTE),
    ("exposed_comm", "communication", Hue.COMMUNICATION),
    ("exposed_copy", "copies", Hue.COPY),
    ("idle.launch_starved.profiler", "profiler", Hue.OTHER),
    ("idle.launch_starved.lazy_init", "start-up", Hue.OTHER),
    ("idle.launch_starved.allocator", "allocator", Hue.MEMORY),
    ("idle.launch_starved.data", "waiting for data", Hue.HOST),
    ("idle.launch_starved.", "CPU late", Hue.HOST),
    ("idle.launch_latency.", "launch delays", Hue.IDLE),
    ("idle.", "other idle", Hue.IDLE),
    ("idle", "nothing recorded", Hue.IDLE),
)
"""Rows of the ledger by what they begin with, first match first: the piece of the bar and its colour."""
WALL_HUES: Final[dict[WallId, Hue]] = {
    "memory": Hue.MEMORY,
    "communication": Hue.COMMUNICATION,
    "host_overhead": Hue.HOST,
    "compute": Hue.COMPUTE,
}


def hue_of(row: str) -> Hue:
    """The colour of a row of the step; a comparison names idle rows without their first word."""
    of = (hue for begin, _, hue in PIECES if row.startswith(begin) or f"idle.{row}".startswith(begin))
    return next(of, Hue.OTHER)
