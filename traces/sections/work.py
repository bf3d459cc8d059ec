"""What a step is given and runs through, whatever its kernels are: `data_loading` and `work` of a
rank.
"""

from collections.abc import Mapping

from traces.missing import OrMissing, known
from traces.sections.section import Bytes, Count, Ns, Section
from traces.texts import Recorded


class DataLoading(Section):
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


class InputCopies(Section):
    """Copies of input of one size, over the used steps."""

    size_bytes: Bytes
    count: Count


class HostCopies(Section):
    """All copies from the host to the GPU, or back, over the used steps or the window.
    `pageable_bytes`: of those that read or write pageable memory.
    """

    count: Count
    size_bytes: OrMissing[Bytes]
    pageable_bytes: OrMissing[Bytes]


class Work(Section):
    """What stays of a step when its kernels change. `ranges`: how many of a family a typical step
    has; `to_gpu`, `to_host`: None in results of before they were measured.
    """

    input_sizes: tuple[InputCopies, ...]
    ranges: Mapping[Recorded, float]
    to_gpu: HostCopies | None = None
    to_host: HostCopies | None = None

    @property
    def pageable_frac(self) -> float | None:
        """The part of the bytes between host and GPU that pageable memory holds; None where there
        are none, or it is unknown.
        """
        pageable_bytes = size_bytes = 0
        for way in (self.to_gpu, self.to_host):
            of_way = known(way.pageable_bytes) if way else None
            if way is None or of_way is None:
                return None
            pageable_bytes += of_way
            size_bytes += known(way.size_bytes) or 0
        return pageable_bytes / size_bytes if size_bytes else None
