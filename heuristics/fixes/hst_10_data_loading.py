"""HST-10: batches that are there when the step asks for them.

Changes who prepares input, and when: more workers that live on and load ahead, augmentation on the GPU, and
where input is copied from pageable memory, pinned memory for copies that run beside compute. Helps where the
launching thread pauses before the step's input copies. Nothing forbids it; each worker takes a CPU core and
host memory.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run
from heuristics.walls.host_overhead import EXPOSED_INPUT
from traces.limits import Limit

WORKERS: Final = Limit(
    8, "workers", "ours: four times the default of Megatron-LM, on a node that has the cores"
)


def change(run: Run) -> Change:
    """More workers of the loader; how many pay off depends on the CPUs beside each GPU."""
    del run
    return Change({"dataset.num_workers": int(WORKERS.value)})


def pinned(run: Run) -> tuple[str, ...]:
    """How input copies keep neither host nor GPU: by pinned memory, or where it is pinned, a batch ahead."""
    pageable, exposed = run.observed.pageable_input, run.observed.exposed_input_frac or 0.0
    if pageable or (pageable is None and exposed >= EXPOSED_INPUT.value):
        pin = "DataLoader(..., pin_memory=True), batch.to(device, non_blocking=True)"
        return (f"input is copied from pageable memory: {pin}" if pageable else pin,)
    if exposed >= EXPOSED_INPUT.value:
        return ("copy the next batch on a stream of its own while this one is computed",)
    return ()


def advice(run: Run) -> tuple[Precondition, ...]:
    """Waits for batches, and cores for those who prepare them; a framework's own ways to read faster."""
    waits = run.seen_ns("host_overhead", ("data",))
    return (
        holds(
            "the GPU waits for the next batch", bool(waits) if waits is not None else None, told_by="a trace"
        ),
        holds("the node has CPU cores to spare for loader workers", None, told_by="nproc, and top in a run"),
    )


def megatron_advice(run: Run) -> tuple[Precondition, ...]:
    """Megatron's indexed data sets are read from files, through a cache of their index."""
    text = "the index of the data set is cached, and its files are read, from a fast file system"
    told = "--data-cache-path; --no-mmap-bin-files where mapped reads are slow; --dataloader-type"
    return (*advice(run), holds(text, None, told_by=told))


FIX: Final = Fix(
    id="HST-10",
    wall="host_overhead",
    title="Load batches ahead with more workers",
    kinds=("data",),
    change=change,
    advice=megatron_advice,
    versions="every release here; 2 workers unless set",
    side_effects=("each worker takes a CPU core and host memory",),
    verify="no pause before the input copies of a step; launch_starved.data falls",
    sources=("Megatron-LM, megatron/training/config at d98e8a64", "PyTorch, torch.utils.data.DataLoader"),
    changes=lambda run: ("batches_in_time",),
    any_program=True,
    pytorch=Form(
        title="Load batches ahead with more workers",
        code=(
            f"DataLoader(..., num_workers={int(WORKERS.value)}, persistent_workers=True, prefetch_factor=4)",
            "where workers do not suffice: augment on the GPU, or cache what was decoded",
        ),
        verify="no pause before the input copies of a step; launch_starved.data falls",
        sources=("PyTorch, torch.utils.data.DataLoader and the performance tuning guide",),
        side_effects=("each worker takes a CPU core and host memory",),
        advice=advice,
        changes=lambda run: ("batches_in_time",),
        beside=pinned,
    ),
)
