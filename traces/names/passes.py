"""Kernels that run once per pass of a module, forward or backward, as their names tell."""

import re
from typing import Final

from traces.names.kernels import KernelClass

MODULES: Final = ("attention", "router", "norm", "activation", "dispatch")
"""Modules whose forward and backward kernels have different names."""

_HELPERS: Final = re.compile(
    r"dot_do_o|convert_dq|reduce_head|dkvaccum|[pP]reprocess|[pP]ostprocess|prepare_varlen|splitkv_combine"
    r"|FlashAttnFwdCombine|get_mla_metadata|mqa_logits"  # attention, before and after
    r"|finalize|GammaBeta|RowwiseMoments|PartGrad|dwdb"  # norm: moments and gradients of the weights
)
"""Kernels beside the one of a pass, which some shapes need and others do not."""

_TOPK: Final = re.compile(r"topk\w*_(forward|backward)")
_BOOL: Final = r"(?:\(bool\))?(true|false|[01])"
_HYBRID: Final = re.compile(rf"hybrid_ep(?:::\w+)*::dispatch_kernel<(?:.*[, ])?{_BOOL}>(?:\(|$)")
_CACHED: Final = re.compile(
    rf"internode\w*::dispatch<(?:\(bool\))?(?:true|false|[01]), ?(?:\(int\))?\d+, ?{_BOOL}\b"
)


def pass_of(name: str, kernel: KernelClass) -> tuple[str, str] | None:
    """Module and phase ("fwd" or "bwd") of which a kernel is the one per pass, None where it is not one.

    A dispatch with fresh routing is forward, one with the routing kept from forward is the backward of
    combine: DeepEP's notify_dispatch and its cached form (between nodes: the third argument of dispatch),
    HybridEP's dispatch by its last argument.
    """
    if kernel.class_ == "comm":
        return _dispatch(name, kernel)
    if kernel.class_ == "router":
        found = _TOPK.search(name)
        return ("router", "fwd" if found[1] == "forward" else "bwd") if found else None
    if kernel.class_ in MODULES and kernel.subclass in ("fwd", "bwd") and not _HELPERS.search(name):
        return kernel.class_, kernel.subclass
    return None


def _dispatch(name: str, kernel: KernelClass) -> tuple[str, str] | None:
    if kernel.subclass == "ep_notify" and kernel.phase in ("fwd", "bwd"):
        return "dispatch", kernel.phase
    if hybrid := _HYBRID.search(name):
        return "dispatch", "fwd" if hybrid[1] in ("true", "1") else "bwd"
    cached = _CACHED.search(name)
    return ("dispatch", "bwd") if cached and cached[1] in ("true", "1") else None
