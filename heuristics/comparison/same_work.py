"""Do two ranks do the same work in a step, on the same kind of GPU? By what the traces show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from heuristics.comparison.difference import Difference
from heuristics.comparison.recorded_alike import trace_of, whole_replays
from traces.limits import Limit
from traces.results.result import Rank, Result

OTHER_PROGRAM: Final = Limit(
    0.2,
    "of kernel work by names that both have",
    "ours: pairs of unrelated recordings share 0 to 0.16, a run with another dispatcher and FP8 at once 0.55",
)
OTHER_KERNELS: Final = Limit(
    0.9,
    "of kernel work by names that both have",
    "ours: a run again shares all of it, one with another dispatcher 0.83 to 0.86",
)
SAME_COUNT: Final = Limit(
    1.25,
    "times as many kernels, or as much work, per step",
    "ours: below half of 1 to 2, the least by which two whole steps are more than one",
)
SAME_UNIT: Final = Limit(
    0.2,
    "of shared kernel work whose count or work per step is the same",
    "ours: full recompute leaves 0.47, twice the layers or microbatches at most 0.05, a window of steps 0",
)
_SELECT: Final = "Say what a step is on both sides: --nvtx REGEX, or --steps A:B."
_ROUTES: Final = frozenset(
    f"{bucket}.{key}"
    for bucket, keys in {
        "compute": ("router", "permute", "grouped_gemm"),
        "comm": ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control"),
    }.items()
    for key in keys
)
"""Keys of kernels that only MoE layers have."""


def work_differences(
    base: Result, new: Result, base_rank: Rank, new_rank: Rank, *, other_share: bool = False
) -> Iterator[Difference]:
    """GPU, ranks, steps, training, kernels, MoE layers.

    `other_share`: the configurations say that a rank cuts the same step another way.
    """
    yield from _gpus(base, new, base_rank, new_rank)
    yield from _places(base, new, base_rank, new_rank)
    yield from _steps(base_rank, new_rank, other_share)
    yield from _training(base_rank, new_rank)
    yield from _kernels(base, new, base_rank, new_rank)
    yield from _experts(base_rank, new_rank)


def shared_work_frac(base: Rank, new: Rank) -> float | None:
    """Kernel work by names that both have, as part of all of the side that shares less; None: not told."""
    one, other = _by_name(base), _by_name(new)
    if not one or not other:
        return None
    shares = []
    for mine, theirs in ((one, other), (other, one)):
        total = sum(work for _, work in mine.values())
        shares.append(sum(work for name, (_, work) in mine.items() if name in theirs) / total if total else 0)
    return float(min(shares))


def same_unit_frac(base: Rank, new: Rank) -> float | None:
    """Of kernels that both have, the work of those with the same count or work per step; None: none shared.

    Twice the steps is twice the kernels, each as long as before. Larger microbatches are fewer kernels, each
    longer; slower kernels are as many as before.
    """
    one, other = _by_name(base), _by_name(new)
    shared = one.keys() & other.keys()
    total = sum(one[name][1] + other[name][1] for name in shared)
    if not total:
        return None
    near = [name for name in shared if any(_near(*pair) for pair in zip(one[name], other[name], strict=True))]
    return float(sum(one[name][1] + other[name][1] for name in near) / total)


def _by_name(rank: Rank) -> dict[str, tuple[Fraction, Fraction]]:
    """Count and work per step of each name of a kernel."""
    per_step: dict[str, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))
    steps = len(rank.steps.lengths_ns)
    for kernel in rank.kernels or ():
        count, work = per_step[kernel.name]
        per_step[kernel.name] = count + Fraction(kernel.count, steps), work + Fraction(kernel.work_ns, steps)
    return per_step


def _near(one: Fraction, other: Fraction) -> bool:
    return max(one, other) <= Fraction(SAME_COUNT.value) * min(one, other)


def _gpus(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    because = "Kernels run at another speed: it is another machine, not a regression."
    gpus = base_rank.gpu, new_rank.gpu
    if None in gpus:
        gpus = _given_gpu(base), _given_gpu(new)
    if None not in gpus and gpus[0] != gpus[1]:
        yield Difference("GPU", str(gpus[0]), str(gpus[1]), "no", because)
        return
    sms = base_rank.sm.get("sm_count"), new_rank.sm.get("sm_count")
    if None not in sms and sms[0] != sms[1]:
        yield Difference("SMs of the GPU", str(sms[0]), str(sms[1]), "no", because)


def _given_gpu(result: Result) -> str | None:
    return str(result.given["gpu"]) if "gpu" in result.given else None


def _places(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    if len(base.ranks) != len(new.ranks):
        because = "Ranks without a partner are left out."
        seen = str(len(base.ranks)), str(len(new.ranks))
        yield Difference("ranks seen", *seen, "with_differences", because)
    numbers = base_rank.rank, new_rank.rank
    if None not in numbers and numbers[0] != numbers[1]:
        because = "Two places of a run hold other experts or layers: the difference may be imbalance."
        yield Difference("rank", str(numbers[0]), str(numbers[1]), "with_differences", because)


def _steps(base: Rank, new: Rank, other_share: bool) -> Iterator[Difference]:
    """Whether a step is the same on both sides, however it was found."""
    found = _source(base), _source(new)
    windows = [not one.steps.has_steps for one in (base, new)]
    same = None if whole_replays(base) != whole_replays(new) else same_unit_frac(base, new)
    if same is not None and same < SAME_UNIT.value:
        counts = f"{found[0]}, {_counts(base)}", f"{found[1]}, {_counts(new)}"
        if other_share and not any(windows):
            because = "Kernels of a step are others in number or size, as the configurations say."
            yield Difference("step", *counts, "with_differences", because)
        else:
            because = f"It holds other work: layers, microbatches, or several steps in one. {_SELECT}"
            yield Difference("step", *counts, "no", because)
    elif same is None and windows[0] != windows[1]:
        because = f"A window is held against steps, and no kernels tell that it is one. {_SELECT}"
        yield Difference("step", *found, "no", because)
    elif all(windows) and base.steps.lengths_ns != new.steps.lengths_ns:
        because = f"Two windows are compared, no steps: their borders are part of the difference. {_SELECT}"
        yield Difference("step", *found, "with_differences", because)
    elif found[0] != found[1]:
        because = f"Borders of steps were found another way, so waits at them may move. {_SELECT}"
        yield Difference("step", *found, "with_differences", because)


def _source(rank: Rank) -> str:
    return f"by {rank.steps.source}" if rank.steps.has_steps else "one window"


def _counts(rank: Rank) -> str:
    return f"{sum(one.count for one in rank.kernels or ()) / len(rank.steps.lengths_ns):.0f} kernels"


def _training(base: Rank, new: Rank) -> Iterator[Difference]:
    kinds = _kind(base), _kind(new)
    if "" not in kinds and kinds[0] != kinds[1]:
        yield Difference("kind of step", *kinds, "no", "One has no backward pass: it is other work.")


def _kind(rank: Rank) -> str:
    trains = rank.detected.get("training_step")
    return "" if trains is None else "training" if trains else "forward only"


def _kernels(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    """Whether it is the same program, by the names of its kernels."""
    shared = shared_work_frac(base_rank, new_rank)
    if shared is None or shared >= OTHER_KERNELS.value or whole_replays(base_rank) != whole_replays(new_rank):
        return
    traces = trace_of(base, base_rank), trace_of(new, new_rank)
    spelled_alike = len({one.kind for one in traces if one}) <= 1
    names = _names(base_rank), _names(new_rank)
    if shared < OTHER_PROGRAM.value and spelled_alike:
        because = f"By name they share {shared:.0%} of the kernel work: these are two programs."
        yield Difference("kernel set", *names, "no", because)
    else:
        because = f"By name they share {shared:.0%} of the kernel work. The rest is new or gone, not slower."
        yield Difference("kernel set", *names, "with_differences", because)


def _names(rank: Rank) -> str:
    return f"{len({one.name for one in rank.kernels or ()})} names"


def _experts(base: Rank, new: Rank) -> Iterator[Difference]:
    """Whether both route tokens, and through as many layers."""
    if whole_replays(base) != whole_replays(new) or not (base.kernels and new.kernels):
        return
    routes = _routes(base), _routes(new)
    if routes[0] != routes[1]:
        yield Difference("MoE", *routes, "no", "Only one side routes tokens: these are two models.")
        return
    layers = [(one.moe or {}).get("layers") for one in (base, new)]
    if None not in layers and layers[0] != layers[1]:
        because = "A rank holds more MoE layers on one side: another stage of the pipeline, or another model."
        yield Difference("MoE layers", str(layers[0]), str(layers[1]), "with_differences", because)


def _routes(rank: Rank) -> str:
    return "routes tokens" if any(one.key in _ROUTES for one in rank.kernels or ()) else "no MoE kernels"
