"""Where a moment of a result lies in the file written for Perfetto, which may have a clock of its
own.
"""

from typing import Final

from heuristics.result.result import Result
from reports.content.moments import Moment
from reports.write.perfetto.analysis import fits_of, on_clock
from traces.patterns import compiled

_ORIGIN: Final = compiled(r'"origin_ns":\s?"(-?\d{1,19})"')


def place_in(written: str, result: Result, moment: Moment) -> tuple[int, int]:
    """Begin and end of a moment in ns, as the written file counts them."""
    to, origin = on_clock(fits_of(result).get(moment.place)), _ORIGIN.search(written)
    origin_ns = int(origin[1]) if origin else 0
    return to(moment.start_ns) - origin_ns, to(moment.end_ns) - origin_ns
