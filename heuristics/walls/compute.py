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

from collections.abc import Iterator
from dataclasses import replace

from heuristics.figures.figures import Ranks
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.costs import RunCosts
from heuristics.walls.price import Price, Priced, judged, shown
from heuristics.words import say
from traces.cures import cure
from traces.limits import HALF_A_WALL, WALL
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.replay.proofs import ELASTIC


def judge(ranks: Ranks, priced: Priced) -> Wall:
    return judged("compute", priced, ranks, [*_context(ranks), *_tensor_cores(ranks)])


def doubted(costs: RunCosts, priced: Price) -> Price:
    doubt, most = priced.at_least, priced.at_most_frac
    if doubt is None:
        doubt = next(_doubts(costs), None)
    if doubt is not None and most is None:
        most = costs.at_most_frac("compute", proofs_hold=False)
    return replace(priced, at_least=doubt, at_most_frac=most)


def _doubts(costs: RunCosts) -> Iterator[Missing]:
    """Why the price may be more."""
    for doubts in (_of_peaks, _of_blocks, _of_replay):
        for rank in costs.ranks:
            yield from doubts(rank.rank)


def _of_peaks(rank: RankMeasurements) -> Iterator[Missing]:
    """Matrix work could use tensor cores, and nothing says how much faster."""
    use, much_ns = rank.tensor_cores, WALL.value * rank.budget.window_ns
    if use.tf32 is True and known(use.fp32_to_tf32_frac) is None and use.simt_ns >= much_ns:
        yield Missing("compute", say("walls.no-peaks-for-gemms"), say("walls.try-tf32"))
    if use.half is not False and not use.peaks_known and use.lengths_ns[1] >= much_ns:
        yield Missing("compute", say("walls.no-peaks"), say("walls.try-autocast"))


def _of_blocks(rank: RankMeasurements) -> Iterator[Missing]:
    """How many blocks fill this GPU is unknown."""
    if known(rank.sm.sm_count) is None:
        yield Missing("compute", say("walls.no-sms-nor-model"), cure("sm_count", rank.kind))


def _of_replay(rank: RankMeasurements) -> Iterator[Missing]:
    """Much matrix work is in FP32, and the replay hardly shrinks with GPU work."""
    use, much_ns = rank.tensor_cores, WALL.value * rank.budget.window_ns
    if use.half is False or isinstance(rank.costs, Missing):
        return
    proofs = rank.costs.proofs
    expected = ELASTIC.value * rank.budget.compute_ns / rank.budget.window_ns
    if use.lengths_ns[1] >= much_ns and proofs.elastic_frac < expected:
        cause = "held-by-host" if proofs.held_by_host else "waits"
        why = say(f"walls.wide-{cause}", saved_frac=proofs.elastic_frac)
        yield Missing("compute", why, cure("host_waits", rank.kind))


def _tensor_cores(ranks: Ranks) -> Iterator[Evidence]:
    matrix_ns = wide_ns = tf32_ns = gemm_ns = simt_ns = simt_count = 0
    for rank in ranks:
        use = rank.tensor_cores
        if use is not None and use.half is not False:
            matrix_ns, wide_ns = matrix_ns + use.lengths_ns[0], wide_ns + use.lengths_ns[1]
            tf32_ns += use.tf32_ns or 0
        if use is not None and use.tf32 is True:
            gemm_ns, simt_ns = gemm_ns + use.gemm_ns, simt_ns + use.simt_ns
            simt_count += use.simt_count
    if wide_ns:
        yield shown("wide_matrix_frac", wide_ns / matrix_ns)
        yield shown("tf32_matrix_frac", tf32_ns / wide_ns)
    if simt_ns:
        yield shown("simt_gemm_frac", simt_ns / gemm_ns)
        yield shown("simt_gemm_count", simt_count)


def _context(ranks: Ranks) -> Iterator[Evidence]:
    judged_ns = work_ns = layout_ns = persistent_ns = 0
    under_filled_ns, fills = None, []
    for rank in ranks:
        judged_ns += rank.judged_ns
        work_ns += rank.work_ns or 0
        layout_ns += rank.layout_ns
        persistent_ns += rank.persistent_ns or 0
        if rank.under_filled_ns is not None:
            under_filled_ns = (under_filled_ns or 0) + rank.under_filled_ns
        if rank.fill_frac is not None:
            fills.append(rank.fill_frac)
    if work_ns and under_filled_ns is not None:
        yield shown("under_filled_frac", under_filled_ns / work_ns)
    if fills:
        yield shown("fill_frac", min(fills))
    if layout_ns >= HALF_A_WALL.value * judged_ns:
        yield shown("layout_frac", layout_ns / judged_ns, HALF_A_WALL.value)
    if persistent_ns:
        yield shown("persistent_frac", persistent_ns / work_ns)
