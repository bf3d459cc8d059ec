"""What a kernel is by its name: its class, by the ordered rules of `kernel_rules.toml`, and what
follows.

Its kind of communication, the pass of a module that it is the one kernel of, whether it is written
to stay on the SM, and the formats that it multiplies or quantises in.
"""

from functools import cache
from typing import Final, Literal

from traces.names.mangled import readable
from traces.patterns import Pattern, compiled, first_found
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table, written


class KernelClass(TableRow, rename={"class_": "class", "rule": "id"}):
    """What a kernel is by its name. `rule` is None where no rule names it (class `other`)."""

    class_: str
    subclass: str
    phase: Literal["fwd", "bwd", "opt", "any"]
    rule: str | None = None
    pattern: Pattern | None = None


UNNAMED: Final = KernelClass("other", "unclassified", "any")
_PACKAGE: Final = "traces.names"
_RULES: Final = "kernel_rules.toml"


WideFormat = Literal["tf32", "3xtf32", "fp32"]
"""Formats of matrix work that 16 bits would beat: 3xtf32 is FP32 by three products in TF32."""


class _Told(TableRow):
    """What a name tells beside the class, each by its table."""

    kind_of_subclass: dict[str, str]
    operation_of_subclass: dict[str, str]
    of_gemm: dict[str, Pattern]
    of_wide: dict[WideFormat, Pattern]
    of_quantising: dict[str, Pattern]


@cache
def _told() -> _Told:
    return read_table(_PACKAGE, "kernels.toml", _Told)


@cache
def _rules() -> tuple[KernelClass, ...]:
    return read_table(_PACKAGE, _RULES, dict[str, tuple[KernelClass, ...]])["rules"]


@cache
def classify_kernel(name: str) -> KernelClass:
    """Class of a kernel name, in nsys's, Kineto's or the linker's spelling; `UNNAMED` where no rule
    matches.

    The rules are tried once per distinct name, whoever asks.
    """
    # as the rules are written, so that the spellings of nsys and Kineto meet
    spelled = readable(name).replace("(anonymous namespace)", "<unnamed>")
    matching = (rule for rule in _rules() if rule.pattern and rule.pattern.search(spelled))
    return next(matching, UNNAMED)


def is_polled_kernel(name: str) -> bool:
    """Whether a host polls for a kernel's token counts: DeepEP's `notify_dispatch`, but no cached
    one.
    """
    kernel = classify_kernel(name)
    return kernel.subclass == "ep_notify" and kernel.phase == "fwd"


COMM_KINDS: Final = (
    "ep_dispatch",
    "ep_combine",
    "ep_a2a",  # expert all-to-all, direction unknown
    "ep_control",  # notify, sync, layout: mostly waiting
    "dp_reduce_scatter",
    "dp_all_gather",
    "all_reduce",
    "tp",
    "pp_p2p",
    "cp",
    "sendrecv_unresolved",
    "other_comm",
)
"""Kinds of communication. Where two are exposed at once, the earlier here gets the instant."""

GRAPH_REPLAY: Final = "graph_replay"
"""Class of a graph replay recorded as one row: busy, its kernels unseen."""


def kind_of(subclass: str) -> str:
    """Kind of a subclass of communication by its name alone.

    `dp_*` never comes from a name, nor `tp` or `cp` for an NCCL kernel: those need evidence from
    the trace.
    """
    return _told().kind_of_subclass.get(subclass, "other_comm")


def operation_of(subclass: str) -> str | None:
    """What a subclass of communication does; None where it does not say."""
    return _told().operation_of_subclass.get(subclass)


def compute_class(kernel: KernelClass) -> str:
    """Key of a compute kernel in `compute_by_class_ns`: its class, with `grouped_gemm` apart from
    `gemm`.
    """
    if kernel.class_ == "gemm" and kernel.subclass == "grouped":
        return "grouped_gemm"
    return kernel.class_


@cache
def compute_classes() -> Texts:
    """Every key `compute_by_class_ns` can have, sorted."""
    rules = written(_PACKAGE, _RULES)["rules"]  # without their patterns, which take 9 ms to compile
    classes = {UNNAMED.class_, *(rule["class"] for rule in rules)} - {"comm"}
    return tuple(sorted(classes | {"grouped_gemm", GRAPH_REPLAY}))


MODULES: Final = ("attention", "router", "norm", "activation", "dispatch")
"""Modules whose forward and backward kernels have different names."""

_HELPERS: Final = compiled(
    r"dot_do_o|convert_dq|reduce_head|dkvaccum|[pP]reprocess|[pP]ostprocess|prepare_varlen"
    r"|splitkv_combine|FlashAttnFwdCombine|get_mla_metadata|mqa_logits"  # beside attention
    r"|finalize|GammaBeta|RowwiseMoments|PartGrad|dwdb"  # norm: moments, and gradients of weights
)
"""Kernels beside the one of a pass, which some shapes need and others do not."""

_TOPK: Final = compiled(r"topk\w*_(forward|backward)")
_BOOL: Final = r"(?:\(bool\))?(true|false|[01])"
_CACHED: Final = compiled(
    rf"internode\w*::dispatch<(?:\(bool\))?(?:true|false|[01]), ?(?:\(int\))?\d+, ?{_BOOL}\b"
)
"""DeepEP internode dispatch: low latency, RDMA ranks, cached; a cached layout is the backward of
combine."""
_HYBRID: Final = compiled(
    rf"hybrid_ep(?:::\w+)*::(dispatch|combine)_kernel<(?:.*[, ])?{_BOOL}>(?:\(|$)"
)
"""HybridEP: the last template argument is FORWARD_DISPATCH of dispatch, BACKWARD_COMBINE of
combine."""


def phase_of(name: str, kernel: KernelClass) -> str | None:
    """Whether a kernel is of a forward or backward pass, as its class or its arguments tell."""
    if kernel.phase in ("fwd", "bwd"):
        return kernel.phase
    if cached := _CACHED.search(name):
        return "bwd" if cached[1] in ("true", "1") else "fwd"
    if hybrid := _HYBRID.search(name):
        return "fwd" if (hybrid[2] in ("true", "1")) == (hybrid[1] == "dispatch") else "bwd"
    return None


def pass_of(name: str, kernel: KernelClass) -> tuple[str, str] | None:
    """Module and phase ("fwd" or "bwd") of which a kernel is the one per pass, None where it is not
    one.

    A dispatch with fresh routing is forward, one with the routing kept from forward is the backward
    of combine: DeepEP's notify_dispatch and its cached form (between nodes: the third argument of
    dispatch), HybridEP's dispatch by its last argument.
    """
    if kernel.class_ == "comm":
        return _dispatch(name, kernel)
    if kernel.class_ == "router":
        match = _TOPK.search(name)
        if match:
            return ("router", "fwd" if match[1] == "forward" else "bwd")
        return None
    if kernel.class_ in MODULES and kernel.subclass in ("fwd", "bwd") and not _HELPERS.search(name):
        return kernel.class_, kernel.subclass
    return None


def is_one_of_a_pass(name: str) -> bool:
    """Whether a kernel of attention or a norm is the one that each pass has: neither before nor
    after it.
    """
    return _HELPERS.search(name) is None


def _dispatch(name: str, kernel: KernelClass) -> tuple[str, str] | None:
    phase = phase_of(name, kernel)
    if kernel.subclass not in ("ep_notify", "ep_dispatch") or phase is None:
        return None
    if phase == "fwd" and _CACHED.search(name):  # its notify_dispatch is the one of the pass
        return None
    return "dispatch", phase


_WRITTEN_SO: Final = compiled(
    r"nvjet"  # cuBLAS from Hopper on
    r"|cutlass3x_sm|deep_gemm::sm\d+_\w*gemm"  # CUTLASS GEMMs with TMA, and DeepGEMM's
    r"|cutlass::device_kernel<"  # CUTLASS 3: GEMMs and FlashAttention 3
)
_BESIDE: Final = compiled(r"cutlass::device_kernel<flash::\S*(?:process|Combine)")
"""Before and after FlashAttention 3."""


def may_be_persistent(name: str) -> bool:
    """Whether a kernel's name is of a family that launches one block per SM.

    Whether it did, its grid tells. Grouped GEMMs, known by their class, are another such family.
    """
    return _WRITTEN_SO.search(name) is not None and _BESIDE.search(name) is None


FP8: Final = "fp8"
"""FP8 whose scaling the name does not give: no suffix, as cuBLAS writes it for one scale per
tensor."""

_MULTIPLIES: Final = ("dense", "grouped", "dense_or_grouped", "dense_or_grouped_wgrad", "gemv")

_SIMT: Final = compiled(
    r"ffma|xmma_gemm_[a-z0-9]+_f32[a-z0-9]*_|simt_sgemm|(?:^|[ _])sgemm|magma_sgemm"
)
_TENSOR: Final = compiled(r"tensorop|s1688|tf32")

_NARROW: Final = compiled(
    r"(?i)bf16|fp16|bfloat16|f16|half|_h(?:884|1688|16816)?(?:gemm|cudnn)|884|hmma|imma|fp8|e[45]m[23]|i8816|int8|_i8"
    r"|nvjet_(?:sm\d+_)?[thqro]|Cijk_[A-Za-z]+_[A-Za-z]+_(?:H|BB|BS|B_|F8|B8|I8)"
)
_AROUND: Final = compiled(r"(?i)[oO]ffsetsKernel|[rR]educe|depthwise|im2col|col2im|fill|add_?bias")
"""Kernels beside the product of a convolution or an attention; depthwise ones are bound by
memory."""


def multiplies(kernel: KernelClass) -> bool:
    """Whether a kernel multiplies matrices: a GEMM that is neither set-up, reduction nor
    convolution.
    """
    return kernel.class_ == "gemm" and kernel.subclass in _MULTIPLIES


def gemm_format(name: str) -> str | None:
    """Format of a GEMM, a name of `traces.settings.precision.BITS`; None where its own does not
    say.
    """
    return first_found(_told().of_gemm.items(), name)


def is_simt_gemm(name: str, kernel: KernelClass) -> bool:
    """Whether a kernel multiplies FP32 matrices without tensor cores, by its name.

    Products of a matrix and a vector are none: memory bounds them, whatever multiplies.
    """
    multiplied = multiplies(kernel) and kernel.subclass != "gemv"
    return multiplied and _SIMT.search(name) is not None and _TENSOR.search(name) is None


def is_matrix_work(name: str, kernel: KernelClass) -> bool:
    """Whether a kernel multiplies matrices large enough for tensor cores: GEMM, convolution or
    attention.
    """
    if kernel.class_ == "gemm":
        return multiplies(kernel) and kernel.subclass != "gemv"
    whole = kernel.class_ == "convolution" or (
        kernel.class_ == "attention" and kernel.subclass != "aux"
    )
    return whole and _AROUND.search(name) is None


def wide_format(name: str, kernel: KernelClass) -> WideFormat | None:
    """The format of matrix work in FP32 or TF32; None for any other, or where the name does not
    say.
    """
    if not is_matrix_work(name, kernel):
        return None
    bare = name.partition("(")[0]
    if is_simt_gemm(name, kernel):
        return "fp32"
    if "tf32" in bare:
        return "tf32"
    if _NARROW.search(bare):
        return None
    return first_found(_told().of_wide.items(), bare)


def quantize_format(name: str) -> str | None:
    """Format that a quantising kernel writes, by our names; None where its own does not say."""
    return first_found(_told().of_quantising.items(), name)
