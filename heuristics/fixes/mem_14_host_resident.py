"""MEM-14: what the GPU reads from host memory in every layer stays on the GPU, or arrives ahead of its use.

Changes where weights or optimizer state live, or when they are copied. Helps where copies from the host fill
the step: each layer waits for its own weights. Copies under compute cost nothing, so what must stay on the
host is brought one block ahead on a stream of its own; where copies take longer than compute, only fewer
bytes help. It is no cure for a model that does not fit: then shard it further first (MEM-8).
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run

_OPTIMIZER: Final = "optimizer.optimizer_cpu_offload"


def change(run: Run) -> Change:
    """Megatron's optimizer offload, where the configuration has it on."""
    return Change({_OPTIMIZER: False}) if run.config.on(_OPTIMIZER) else Change()


def advice(run: Run) -> tuple[Precondition, ...]:
    """Room for what moves to the GPU; without it there is the prefetch."""
    fact, text = run.config.memory_tight is False or None, "memory has room for what is kept on the GPU"
    return (holds(f"{text}; else prefetch it", fact, told_by="--memory-tight"),)


FIX: Final = Fix(
    id="MEM-14",
    wall="memory",
    with_room=True,
    title="Keep what each layer reads on the GPU, or prefetch it",
    kinds=("host_resident",),
    change=change,
    advice=advice,
    versions="every Megatron-Core release here",
    side_effects=(
        "the GPU's memory fills by what is kept there, or by one block in flight",
        "prefetching helps only as far as compute lasts as long as the copies",
    ),
    verify="copies from the host within the step are gone, or lie under compute",
    sources=(
        "PyTorch documentation, torch.distributed.fsdp: CPUOffload, CPUOffloadPolicy",
        "CUDA C++ Best Practices Guide, asynchronous and overlapping transfers with computation",
    ),
    direct=("host_resident",),
    takes_away=True,
    any_program=True,
    pytorch=Form(
        title="Keep what each layer reads on the GPU, or prefetch it",
        code=(
            "FSDP: cpu_offload=None, or CPUOffload(offload_params=False); FSDP2: no CPUOffloadPolicy",
            "if it must stay on the host: pin it, and copy the next block with non_blocking=True on a stream "
            "of its own",
            "fewer bytes: keep the host's copy in BF16, and offload fewer blocks",
        ),
        verify="copies from the host within the step are gone, or lie under compute",
        sources=("PyTorch documentation, torch.distributed.fsdp: CPUOffload, CPUOffloadPolicy",),
        versions="every PyTorch release since 2.0; FSDP2's CPUOffloadPolicy since 2.4",
        side_effects=("the GPU's memory fills by what is kept there, or by one block in flight",),
        advice=advice,
    ),
)
