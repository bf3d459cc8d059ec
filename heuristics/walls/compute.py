"""The compute wall: kernels run, but leave SMs without work, or tensor cores without matrices.

What is removed to measure it: kernels with fewer blocks than the GPU has SMs take blocks / SMs of their time,
and FP32 GEMMs without tensor cores, on a GPU that has TF32, take FP32 / TF32 peak of it (kind
`no_tensor_cores`). Other matrix work in FP32 or TF32 (convolutions, attention), on a GPU with tensor cores
for 16 bits, takes its peak now / that of BF16, or FP16 before Ampere (kind `low_precision_unused`).

How we tell: by the launch, by names and by replay; a ceiling, so the range is from 0 to it. Tails, short
kernels and one GEMM per expert are evidence, not cost: by a tail formula ordinary dense runs would show a
false wall of 4 to 20 % (measured on real recordings).

What it is not: low occupancy of persistent kernels (nvjet, CUTLASS's TMA GEMMs, FlashAttention 3, grouped
GEMM), whose grid is the number of SMs by design; nor a step that is mostly compute: that is bound by
compute, and has levers (precision, larger shapes), not a wall.
References: CUDA C++ Best Practices Guide, execution configuration; Megatron-Core's MoE guide, grouped GEMM;
NVIDIA's data sheets (peak rates).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from heuristics.figures.figures import Figures
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.price import WALL, Price, Unpriced, at_most_frac, judged, price, shown
from traces.cures import cure
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.replay.proofs import ELASTIC
from traces.spelling import percent

LAYOUT: Final = Limit(0.05, "fraction of the windows", "ours: half a wall; less is not worth another layout")


def judge(ranks: Sequence[Figures], told: Price | Unpriced) -> Wall:
    """Judge the compute of a run's ranks (at least one)."""
    return judged("compute", told, ranks, [*_context(ranks), *_tensor_cores(ranks)])


def measured(measurements: Sequence[RankMeasurements]) -> Price | Unpriced:
    """Its price by replay."""
    told = price(measurements, "compute")
    if isinstance(told, Unpriced):
        return told
    doubt = told.at_least or _without_peaks(measurements) or _without_grids(measurements)
    doubt = doubt or _without_proof(measurements)
    most = told.at_most_frac
    if doubt is not None and most is None:
        most = at_most_frac(measurements, "compute", proofs_hold=False)
    return replace(told, at_least=doubt, at_most_frac=most)


def _without_proof(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why the price may be more: much matrix work is in FP32, and the replay hardly shrinks with GPU work."""
    for rank in measurements:
        if rank.tensor_cores.half is False or isinstance(rank.costs, Missing):
            continue
        window_ns, elastic_frac = rank.budget.window_ns, rank.costs.proofs.elastic_frac
        held = rank.costs.proofs.held_by_host
        expected = ELASTIC.value * rank.budget.compute_ns / window_ns
        if rank.tensor_cores.lengths_ns[1] >= WALL.value * window_ns and elastic_frac < expected:
            why = "the host is nearly the limit too" if held else "what waits for what is not understood"
            reason = (
                f"matrix work runs in FP32 or TF32, and a replay with all GPU work halved saves only "
                f"{percent(elastic_frac)}: {why}"
            )
            return Missing("compute", reason, cure("host_waits", rank.kind))
    return None


def _without_grids(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why the price may be more: how many blocks fill this GPU is unknown."""
    for rank in measurements:
        if known(rank.sm.sm_count) is None:
            why = "the trace records neither the number of SMs of the GPU nor a known model"
            return Missing("compute", why, cure("sm_count", rank.kind))
    return None


def _without_peaks(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why the price may be more: matrix work could use tensor cores, and nothing says how much faster."""
    for rank in measurements:
        use = rank.tensor_cores
        long = use.simt_ns >= WALL.value * rank.budget.window_ns
        if use.tf32 is True and known(use.fp32_to_tf32_frac) is None and long:
            reason = "GEMMs run in FP32 without tensor cores, and this GPU's peak rates are not known here"
            return Missing("compute", reason, "try TF32: torch.set_float32_matmul_precision('high')")
        if (
            use.half is not False
            and not use.peaks_known
            and use.lengths_ns[1] >= WALL.value * rank.budget.window_ns
        ):
            reason = "matrix work runs in FP32 or TF32, and this GPU's peak rates are not known here"
            return Missing("compute", reason, "give --gpu-model, or try torch.autocast")
    return None


def _tensor_cores(ranks: Sequence[Figures]) -> list[Evidence]:
    """How much matrix work could be in 16 bits, and how many GEMMs in TF32, where the GPU has them."""
    told = [rank.tensor_cores for rank in ranks if rank.tensor_cores is not None]
    uses = [use for use in told if use.tf32 is True]
    simt_ns, gemm_ns = sum(use.simt_ns for use in uses), sum(use.gemm_ns for use in uses)
    lengths = [use.lengths_ns for use in told if use.half is not False]
    matrix_ns, wide_ns = sum(matrix for matrix, _ in lengths), sum(wide for _, wide in lengths)
    found = []
    if wide_ns:
        said = "GEMMs, convolutions and attention in FP32 or TF32, by their names"
        found = [shown("wide_matrix_frac", wide_ns / matrix_ns, "fraction of matrix work", said)]
    if not simt_ns:
        return found
    why, count = "FP32 GEMMs without tensor cores, by their names", sum(use.simt_count for use in uses)
    return [
        *found,
        shown("simt_gemm_frac", simt_ns / gemm_ns, "fraction of GEMM work", why),
        shown("simt_gemm_count", count, "count", why),
    ]


def _context(ranks: Sequence[Figures]) -> list[Evidence]:
    """How the launches of all ranks use the SMs."""
    found, work_ns = [], sum(rank.work_ns or 0 for rank in ranks)
    of_work = "fraction of compute work"
    under = [rank.under_filled_ns for rank in ranks if rank.under_filled_ns is not None]
    if work_ns and under:
        why = "kernels with fewer blocks than SMs"
        found.append(shown("under_filled_frac", sum(under) / work_ns, of_work, why))
    filled = [rank.fill_frac for rank in ranks if rank.fill_frac is not None]
    if filled:
        why = "blocks against what the SMs hold, of the rank that fills least; persistent kernels apart"
        found.append(shown("fill_frac", min(filled), "fraction of the SMs", why))
    layout_ns = sum((rank.by_class_ns or {}).get("layout", 0) for rank in ranks)
    if layout_ns >= LAYOUT.value * sum(rank.judged_ns for rank in ranks) > 0:
        why = "tensors change between NCHW and NHWC; one layout throughout (channels last) avoids it"
        share = layout_ns / sum(rank.judged_ns for rank in ranks)
        found.append(shown("layout_frac", share, "fraction of the windows", why, LAYOUT.value))
    if persistent_ns := sum(rank.persistent_ns or 0 for rank in ranks):
        why = "low occupancy by design, never a finding"
        found.append(shown("persistent_frac", persistent_ns / work_ns, of_work, why))
    return found
