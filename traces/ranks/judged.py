"""All tables behind what is found in a run of many ranks."""

from dataclasses import dataclass

from traces.columns import FloatArray
from traces.ranks.alike import Alike
from traces.ranks.charge import Charged
from traces.ranks.clocks import Aligned
from traces.ranks.excess import Excess
from traces.ranks.grid import Grid
from traces.ranks.late import Suspicion
from traces.ranks.links import Links
from traces.ranks.routing import Routing
from traces.ranks.together import Together
from traces.ranks.waits import Waits


@dataclass(frozen=True, slots=True)
class Judged:
    """All figures behind an analysis, for those who ask more of them."""

    together: Together
    aligned: Aligned
    waits: Waits
    grid: Grid
    alike: tuple[Alike, ...]
    factor: FloatArray
    excess: Excess
    links: Links | None
    routing: Routing
    suspicion: Suspicion
    charged: Charged
