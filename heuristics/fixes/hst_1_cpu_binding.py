"""HST-1: each rank's process on the CPU cores and memory next to its GPU.

Changes the launch command only. Helps where launches are slow or their delay differs from rank to rank, above
all on Grace systems and large communication domains; it costs nothing to try. The number of GPUs that share a
NUMA node is the machine's: a wrong one binds a rank to the far socket.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not
from heuristics.run.run import Run
from traces.limits import Limit

GRACE: Final = Limit(2, "GPUs a NUMA node", "Megatron-Bridge, docs/performance-guide.md: Grace-based systems")
X86: Final = Limit(4, "GPUs a NUMA node", "Megatron-Bridge, docs/performance-guide.md: x86-based systems")


def change(run: Run) -> Change:
    """numactl before each rank's command; x86's number of GPUs a node where the GPU is unknown."""
    share = int((GRACE if run.config.hardware_class == "nvl72" else X86).value)
    node = f"$((SLURM_LOCALID/{share}))"
    command = f"numactl --cpunodebind={node} --membind={node} COMMAND"
    return Change({"launcher.numa_binding": True}, launch=(command,))


def advice(run: Run) -> tuple[Precondition, ...]:
    """Ranks that are not bound yet, on a machine whose NUMA nodes are known."""
    bound, known = run.config.cpu_bound_to_numa, run.config.hardware_class not in (None, "other")
    text = "the number of GPUs on a NUMA node follows from the GPU"
    return (
        holds("the run has more than one GPU", _several(run), told_by="--world-size"),
        is_not("ranks are not bound to NUMA nodes yet", bound, told_by="--cpu-bound-to-numa"),
        holds(text, known or None, told_by="--gpu-model"),
    )


def _several(run: Run) -> bool | None:
    """Whether more than one GPU runs: by the ranks, else by the recording."""
    return run.observed.several_gpus if run.config.world is None else run.config.world > 1


FIX: Final = Fix(
    id="HST-1",
    wall="host_overhead",
    title="Bind each rank to its GPU's NUMA node",
    kinds=("launch", "python", "arrival"),
    change=change,
    advice=advice,
    versions=(
        "any. Megatron-Bridge's performance harness does it on Slurm by itself; its Kubeflow launcher with "
        "NEMO_KUBEFLOW_NUMA_BINDING=1. bindpcie of NVIDIA/mlperf-common reads the topology instead of a "
        "number"
    ),
    gains=(
        Gain(
            "691.49 to 762.12 TFLOPS/GPU with bindpcie: DeepSeek-V3, 256 GB200, MXFP8, EP32, DeepEP",
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8",
        ),
    ),
    side_effects=(
        "a wrong number of GPUs a node binds ranks to the far socket; numactl must be in the container",
    ),
    verify="launch calls and the delay from launch to start get shorter, and equal over ranks",
    sources=(
        "Megatron-Bridge, docs/performance-guide.md and scripts/performance/utils/executors.py at 067f987d",
        "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8, 2.4",
    ),
    any_framework=True,
    any_program=True,
)
