"""What a step is given and runs through, whatever its kernels are: `data_loading` and `work` of a
rank.
"""

from collections.abc import Mapping

from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Ns, Section
from traces.texts import Recorded


class DataLoading(Section, frozen=True):
    """Waits for the next batch. `workers`: of the loader, as many as bear its name
    (`workers_named`), else by the rhythm of the waits; 1 may be none.

    `loads_apart`: whether processes of their own load; None where no range of a loader names it.
    """

    waiting_steps: Count
    workers: OrMissing[Count]
    input_copies: Count
    input_copies_pageable: OrMissing[Count]
    input_copies_exposed_ns: Ns
    loads_apart: bool | None = None
    workers_named: bool = False


class InputCopies(Section, frozen=True):
    """Copies of input of one size, over the used steps."""

    size_bytes: Bytes
    count: Count


class Work(Section, frozen=True):
    """What stays of a step when its kernels change. `ranges`: how many of a family a typical step
    has.
    """

    input_sizes: tuple[InputCopies, ...]
    ranges: Mapping[Recorded, float]
