"""The compute wall: kernels run, but leave SMs without work, or tensor cores without matrices.

What is removed to measure it: kernels with fewer blocks than the GPU has SMs take blocks / SMs of
their time, and FP32 GEMMs without tensor cores, on a GPU that has TF32, take FP32 / TF32 peak of it
(kind `no_tensor_cores`). Other matrix work in FP32 or TF32 (convolutions, attention), on a GPU with
tensor cores for 16 bits, takes its peak now / that of BF16, or FP16 before Ampere (kind
`low_precision_unused`).

How we tell: by the launch, by names and by replay; a ceiling, so the range is from 0 to it. Tails,
short kernels and one GEMM per expert are evidence, not cost: by a tail formula ordinary dense runs
would show a false wall of 4 to 20 % (measured on real recordings).

What it is not: low occupancy of persistent kernels (nvjet, CUTLASS's TMA GEMMs, FlashAttention 3,
grouped GEMM), whose grid is the number of SMs by design; nor a step that is mostly compute: that is
bound by compute, and has levers (precision, larger shapes), not a wall. References: CUDA C++ Best
Practices Guide, execution configuration; Megatron-Core's MoE guide, grouped GEMM; NVIDIA's data
sheets (peak rates).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heuristics.figures.figures import Ranks
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.price import Price, Priced, RankCosts, RunCosts, judged, shown
from heuristics.words import say
from traces.cures import cure
from traces.limits import HALF_A_WALL, WALL
from traces.missing import Missing, known
from traces.replay.proofs import ELASTIC


def judge(ranks: Ranks, told: Priced) -> Wall:
    return judged("compute", told, ranks, [*_context(ranks), *_tensor_cores(ranks)])


def doubted(costs: RunCosts, told: Price) -> Price:
    doubt, most = told.at_least, told.at_most_frac
    if doubt is None:
        doubt = next(_doubts(costs.ranks), None)
    if doubt is not None and most is None:
        most = costs.at_most_frac("compute", proofs_hold=False)
    return replace(told, at_least=doubt, at_most_frac=most)


def _doubts(costs: Sequence[RankCosts]) -> Iterator[Missing]:
    """Why the price may be more.

    Matrix work could use tensor cores, and nothing says how much faster; how many blocks fill this
    GPU is unknown; or much matrix work is in FP32, and the replay hardly shrinks with GPU work.
    """
    ranks = [
        (one.rank, one.rank.tensor_cores, WALL.value * one.rank.budget.window_ns) for one in costs
    ]
    for _, use, much_ns in ranks:
        if use.tf32 is True and known(use.fp32_to_tf32_frac) is None and use.simt_ns >= much_ns:
            yield Missing("compute", say("walls.no-peaks-for-gemms"), say("walls.try-tf32"))
        if use.half is not False and not use.peaks_known and use.lengths_ns[1] >= much_ns:
            yield Missing("compute", say("walls.no-peaks"), say("walls.try-autocast"))
    for rank, _, _ in ranks:
        if known(rank.sm.sm_count) is None:
            yield Missing("compute", say("walls.no-sms-nor-model"), cure("sm_count", rank.kind))
    for rank, use, much_ns in ranks:
        if use.half is False or isinstance(rank.costs, Missing):
            continue
        proofs = rank.costs.proofs
        expected = ELASTIC.value * rank.budget.compute_ns / rank.budget.window_ns
        if use.lengths_ns[1] >= much_ns and proofs.elastic_frac < expected:
            cause = "held-by-host" if proofs.held_by_host else "waits"
            why = say(f"walls.wide-{cause}", saved_frac=proofs.elastic_frac)
            yield Missing("compute", why, cure("host_waits", rank.kind))


def _tensor_cores(ranks: Ranks) -> Iterator[Evidence]:
    told = [rank.tensor_cores for rank in ranks if rank.tensor_cores is not None]
    lengths = [use.lengths_ns for use in told if use.half is not False]
    if wide_ns := sum(wide for _, wide in lengths):
        yield shown("wide_matrix_frac", wide_ns / sum(matrix for matrix, _ in lengths))
    uses = [use for use in told if use.tf32 is True]
    if simt_ns := sum(use.simt_ns for use in uses):
        yield shown("simt_gemm_frac", simt_ns / sum(use.gemm_ns for use in uses))
        yield shown("simt_gemm_count", sum(use.simt_count for use in uses))


def _context(ranks: Ranks) -> Iterator[Evidence]:
    work_ns = sum(rank.work_ns or 0 for rank in ranks)
    judged_ns = sum(rank.judged_ns for rank in ranks)
    under = [rank.under_filled_ns for rank in ranks if rank.under_filled_ns is not None]
    if work_ns and under:
        yield shown("under_filled_frac", sum(under) / work_ns)
    if filled := [rank.fill_frac for rank in ranks if rank.fill_frac is not None]:
        yield shown("fill_frac", min(filled))
    layout_ns = sum(rank.layout_ns for rank in ranks)
    if layout_ns >= HALF_A_WALL.value * judged_ns > 0:
        yield shown("layout_frac", layout_ns / judged_ns, HALF_A_WALL.value)
    if persistent_ns := sum(rank.persistent_ns or 0 for rank in ranks):
        yield shown("persistent_frac", persistent_ns / work_ns)
