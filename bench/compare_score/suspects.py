"""Which suspects may stand first, by cause: ids of causes.toml as patterns, by what their titles claim.

Written down from what was changed and from the titles alone. A suspect is false where its title is not what
was done: "the same kernels take longer" where their number changed, or a rank that is late where a link is
slower and no rank is.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

_HOST: Final = ("host_slower",)

ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "dense GEMMs slower": ("kernels_slower.gemm",),
    "grouped GEMMs slower": ("kernels_slower.grouped_gemm",),
    "attention slower": ("kernels_slower.attention",),
    "permutes slower": ("kernels_slower.permute",),
    "norms slower": ("kernels_slower.norm",),
    "activations slower": ("kernels_slower.activation",),
    "optimizer slower": ("kernels_slower.optimizer",),
    "clocks throttled": ("gpu_slower", "kernels_slower.*"),
    "smaller expert grids": ("kernels_grid.grouped_gemm",),
    "core attention recomputed": ("recompute_more", "kernels_more.attention", "kernels_number.attention"),
    "slower links between experts": ("comm_slower.ep",),
    "gradients no longer overlapped": ("overlap_lost.dp",),
    "activations offloaded": ("offload_more", "copies_exposed"),
    "norm's all-reduce late": ("comm_slower.all_reduce",),
    "allocator retries": ("allocator",),
    "DeepEP dispatch slower": ("comm_slower.ep",),
    "peers late": ("arrival_wait", "comm_slower.ep"),
    "slower links of tensor parallelism": ("comm_slower.tp", "comm_slower.other"),
    "late pipeline stage": ("comm_slower.pp", "comm_slower.sendrecv"),
    "slower context exchange": ("comm_slower.cp", "comm_slower.sendrecv"),
    "wider gaps between kernels": ("kernel_gaps",),
    "Python slower": _HOST,
    "launch calls slower": _HOST,
    "token counts read slower": ("token_count_syncs", *_HOST),
    "garbage collected in layers": ("gc_pauses",),
    "data loader late": ("data_loader",),
    "graphs lost": ("graphs_stopped",),
}
"""By the name of a cause; a cause with none beside it is not asked."""


def may_stand_first(suspect: str, allowed: tuple[str, ...]) -> bool:
    """Whether what a suspect claims is one of the things that were done."""
    return any(fnmatchcase(suspect, pattern) for pattern in allowed)
