"""One typical step of each side, aligned: what one does by other kernels than the other."""

from typing import Annotated, Literal

from msgspec import Meta

from traces.sections.section import Count, Ns, Section
from traces.sections.tables import Phase

Number = Annotated[float, Meta(ge=0)]
ExchangeChange = Literal["exchanged", "more", "fewer", "new", "gone"]


class Worked(Section, frozen=True):
    """Kernels of one name in a step, or copies by their key: how many, and their time, summed."""

    name: str
    key: str
    count: Number
    work_ns: Ns


class Exchange(Section, frozen=True):
    """Work that stands in the same places of both steps, over all layers. `key`: what most of it is.

    `base` and `new` list the kernels with the most work; the counts and times are of all.

    `change`: `exchanged` where a side does it by other kernels; `more` or `fewer` of the same; `new` and
    `gone` where one side alone has it. `phase` None where it is of several, or not known.
    """

    change: ExchangeChange
    key: str
    phase: Phase | None
    base: tuple[Worked, ...]
    new: tuple[Worked, ...]
    base_count: Number
    new_count: Number
    base_ns: Ns
    new_ns: Ns
    delta_ns: int


class ExchangeSum(Section, frozen=True):
    """Activities of either side, and their time, summed."""

    base_count: Number
    new_count: Number
    base_ns: Ns
    new_ns: Ns


class Exchanges(Section, frozen=True):
    """One typical step of each side, aligned in the order of launches: what one does by other kernels.

    `rows`, the largest difference first, `same` (the same kernels, as many, in the same places) and
    `left_out` (the `left_out_rows` smallest) add up to the work of both steps exactly.
    """

    rows: tuple[Exchange, ...]
    same: ExchangeSum
    left_out_rows: Count
    left_out: ExchangeSum
