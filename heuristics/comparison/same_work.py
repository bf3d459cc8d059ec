"""Do two ranks do the same work in a step, on the same kind of GPU? By what the traces show.

How much work a step does is told by its backward kernels, else by the kernels that both have. A backward pass
runs once for each microbatch and layer, whatever is recomputed, so its kernels tell another amount of work
from a forward that runs twice. The optimizer runs once a step, whatever the step holds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from heuristics.comparison.difference.changed import trace_of
from heuristics.comparison.recorded_alike import same_recording, whole_replays
from heuristics.comparison.suspects.view import same_count
from heuristics.result.compared import Difference
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known
from traces.names.kernels import classify_kernel
from traces.sections.rank import Rank
from traces.sections.tables import Kernel
from traces.spelling import percent

NEAR: Final = Limit(
    1.25,
    "times as many kernels, or as much work, per step",
    "ours: below half of 1 to 2, the least by which two whole steps are more than one",
)
SAME_BACKWARD: Final = Limit(
    0.5,
    "of the work of backward kernels in classes with as many of them",
    "ours: more than half; a fused norm changes one class, layers or microbatches change all",
)
SAME_UNIT: Final = Limit(
    0.2,
    "of shared kernel work whose count or work per step is the same",
    "ours: full recompute leaves 0.47, twice the layers or microbatches at most 0.05, a window of steps 0",
)
_OPTIMIZER: Final = "compute.optimizer"

PerStep = Mapping[str, tuple[Fraction, Fraction]]
"""By family: count and work in ns, per step."""


def same_unit(base: Rank, new: Rank) -> bool | None:
    """Whether a step holds the same work; None where no kernels tell.

    By backward kernels where names tell them, by class; else by all kernels but the optimizer's, by name.
    """
    for family, near, limit in ((_backward, _same_passes, SAME_BACKWARD), (_by_name, _near, SAME_UNIT)):
        frac = _same_frac(per_step(base, family), per_step(new, family), near)
        if frac is not None:
            return frac >= limit.value
    return None


def same_classes(base: Rank, new: Rank) -> bool | None:
    """Whether every class of compute has as many kernels; None where a side has none.

    What windows are held to: their borders cut the work anywhere, so nothing else shows how much they hold.
    """
    one, other = (per_step(rank, _compute_class) for rank in (base, new))
    if not one or not other:
        return None
    return one.keys() == other.keys() and all(_same_count(one[key], other[key]) for key in one)


def per_step(rank: Rank, family: Callable[[Kernel], str | None]) -> PerStep:
    """Count and work per step of kernels by family; those without one are left out."""
    found: dict[str, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))
    steps = len(rank.lengths_ns)
    for kernel in rank.kernel_table.rows:
        key = family(kernel)
        if key is not None:
            count, work = found[key]
            found[key] = count + Fraction(kernel.count, steps), work + Fraction(kernel.work_ns, steps)
    return dict(found)


def _compute_class(kernel: Kernel) -> str | None:
    return kernel.key if kernel.key.startswith("compute.") else None


def _backward(kernel: Kernel) -> str | None:
    """The class of a compute kernel whose name says that it runs in backward."""
    is_backward = kernel.key.startswith("compute.") and classify_kernel(kernel.name).phase == "bwd"
    return kernel.key if is_backward else None


def _by_name(kernel: Kernel) -> str | None:
    return None if kernel.key == _OPTIMIZER else kernel.name


Pair = tuple[Fraction, Fraction]


def _same_frac(base: PerStep, new: PerStep, near: Callable[[Pair, Pair], bool]) -> float | None:
    """Of the families that both have, the part of the work that is near; None where they share none."""
    shared = base.keys() & new.keys()
    works = {key: base[key][1] + new[key][1] for key in shared}
    total = sum(works.values())
    return float(sum(works[key] for key in shared if near(base[key], new[key])) / total) if total else None


def _same_passes(one: Pair, other: Pair) -> bool:
    """As many kernels; or a whole number of times fewer, which do as much: larger microbatches."""
    if _same_count(one, other):
        return True
    few, many = sorted((one, other))
    times = many[0] / few[0]
    return same_count(float(times), round(times)) and _near_each(few[1], many[1])


def _near(one: Pair, other: Pair) -> bool:
    """Twice the steps is twice the kernels, each as long as before: neither count nor work is near."""
    return any(_near_each(*pair) for pair in zip(one, other, strict=True))


def _near_each(one: Fraction, other: Fraction) -> bool:
    return max(one, other) <= Fraction(NEAR.value) * min(one, other)


def _same_count(one: Pair, other: Pair) -> bool:
    return same_count(float(one[0]), float(other[0]))


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
_SELECT: Final = "Define the step on both sides: --nvtx REGEX, or --steps A:B."
_ROUTES: Final = frozenset(
    f"{bucket}.{key}"
    for bucket, keys in {
        "compute": ("router", "permute", "grouped_gemm"),
        "comm": ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control"),
    }.items()
    for key in keys
)
"""Keys of kernels that only MoE layers have."""
_MAY_ROUTE: Final = "comm.sendrecv_unresolved"
"""Perhaps their all-to-all: without ranges or named permutes it is unknown."""


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
    """Kernel work by names that both have, as part of all of the side that shares less; None: unknown."""
    one, other = (per_step(rank, lambda kernel: kernel.name) for rank in (base, new))
    if not one or not other:
        return None
    shares = []
    for mine, theirs in ((one, other), (other, one)):
        total = sum(work for _, work in mine.values())
        shares.append(sum(work for name, (_, work) in mine.items() if name in theirs) / total if total else 0)
    return float(min(shares))


def _gpus(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    because = "Kernels run at another speed: it is another machine, not a regression."
    gpus = known(base_rank.gpu), known(new_rank.gpu)
    if None in gpus:
        gpus = _given_gpu(base), _given_gpu(new)
    if None not in gpus and gpus[0] != gpus[1]:
        yield Difference("GPU", str(gpus[0]), str(gpus[1]), "no", because)
        return
    sms = known(base_rank.sm.sm_count), known(new_rank.sm.sm_count)
    if None not in sms and sms[0] != sms[1]:
        yield Difference("SMs of the GPU", str(sms[0]), str(sms[1]), "no", because)


def _given_gpu(result: Result) -> str | None:
    return str(result.given["gpu"]) if "gpu" in result.given else None


def _places(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    if len(base.ranks) != len(new.ranks):
        because = "Ranks without a partner are left out."
        seen = str(len(base.ranks)), str(len(new.ranks))
        yield Difference("ranks seen", *seen, "with_differences", because)
    numbers = known(base_rank.rank), known(new_rank.rank)
    if None not in numbers and numbers[0] != numbers[1]:
        because = "Two places of a run hold other experts or layers: the difference may be imbalance."
        yield Difference("rank", str(numbers[0]), str(numbers[1]), "with_differences", because)


def _steps(base: Rank, new: Rank, other_share: bool) -> Iterator[Difference]:
    """Whether a step is the same on both sides, however it was found."""
    if not (base.steps.found and new.steps.found):
        yield from _windows(base, new)
        return
    found = _source(base), _source(new)
    same = None if whole_replays(base) != whole_replays(new) else same_unit(base, new)
    if same is False:
        counts = f"{found[0]}, {_counts(base)}", f"{found[1]}, {_counts(new)}"
        if other_share:
            because = "Kernels of a step differ in number or size, as the configurations do."
            yield Difference("step", *counts, "with_differences", because)
        else:
            because = f"It holds other work: layers, microbatches, several steps, or part of one. {_SELECT}"
            yield Difference("step", *counts, "no", because)
    elif found[0] != found[1]:
        because = f"Borders of steps were found another way, so waits at them may move. {_SELECT}"
        yield Difference("step", *found, "with_differences", because)


def _windows(base: Rank, new: Rank) -> Iterator[Difference]:
    """A window without steps may cut a step or hold several: it is compared where it holds the same work."""
    found = _source(base), _source(new)
    same = None if whole_replays(base) != whole_replays(new) else same_classes(base, new)
    if same is not False and same_recording(base, new):
        return
    if same is None:
        because = f"Without kernels the work in a window without steps is unknown. {_SELECT}"
        yield Difference("step", *found, "no", because)
    elif not same:
        because = f"A window without steps holds another amount of work: it cuts steps anywhere. {_SELECT}"
        counts = f"{found[0]}, {_counts(base)}", f"{found[1]}, {_counts(new)}"
        yield Difference("step", *counts, "no", because)
    else:
        because = f"No steps on a side: the borders of its window are part of the difference. {_SELECT}"
        yield Difference("step", *found, "with_differences", because)


def _source(rank: Rank) -> str:
    return f"by {rank.steps.source}" if rank.steps.found else "one window"


def _counts(rank: Rank) -> str:
    return f"{sum(one.count for one in rank.kernel_table.rows) / len(rank.lengths_ns):.0f} kernels"


def _training(base: Rank, new: Rank) -> Iterator[Difference]:
    kinds = _kind(base), _kind(new)
    if "" not in kinds and kinds[0] != kinds[1]:
        yield Difference("kind of step", *kinds, "no", "One has no backward pass: it is other work.")


def _kind(rank: Rank) -> str:
    trains = known(rank.detected.training_step)
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
        because = f"By name they share {percent(shared)} of the kernel work: these are two programs."
        yield Difference("kernel set", *names, "no", because)
    else:
        because = (
            f"By name they share {percent(shared)} of the kernel work. The rest is new or gone, not slower."
        )
        yield Difference("kernel set", *names, "with_differences", because)


def _names(rank: Rank) -> str:
    return f"{len({one.name for one in rank.kernel_table.rows})} names"


def _experts(base: Rank, new: Rank) -> Iterator[Difference]:
    """Whether both route tokens, and through as many layers."""
    if whole_replays(base) != whole_replays(new) or not (base.kernel_table.rows and new.kernel_table.rows):
        return
    routes = _routes(base), _routes(new)
    if "" not in routes and routes[0] != routes[1]:
        yield Difference("MoE", *routes, "no", "Only one side routes tokens: these are two models.")
        return
    layers = [known(moe.layers) if (moe := known(one.moe)) else None for one in (base, new)]
    if None not in layers and layers[0] != layers[1]:
        because = "A rank holds more MoE layers on one side: another stage of the pipeline, or another model."
        yield Difference("MoE layers", str(layers[0]), str(layers[1]), "with_differences", because)


def _routes(rank: Rank) -> str:
    """Whether MoE kernels run; empty where only an exchange of unknown purpose does."""
    keys = {one.key for one in rank.kernel_table.rows}
    if keys & _ROUTES:
        return "routes tokens"
    return "" if _MAY_ROUTE in keys else "no MoE kernels"
