"""Do two ranks do the same work in a step, on the same kind of GPU? By what the traces show."""

from collections.abc import Iterator
from typing import Final

from heuristics.comparison.configured import trace_of
from heuristics.comparison.recorded_alike import same_recording, whole_replays
from heuristics.comparison.work_amount import per_step, same_classes, same_unit
from heuristics.result.compared import Difference
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import percent

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
