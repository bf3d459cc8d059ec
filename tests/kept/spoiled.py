"""Small random runs with exceptions put in that no program of `drawn` makes: of each run one or two kinds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from bench.simulate.recording import Recording, Row
from tests.second_definition.drawn import draw

KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES: Final = "NVTX_EVENTS"
NAMES: Final = (
    "my_library::kernel_of_my_own(float*)", "triton_poi_fused_add_3", "sm90_xmma_gemm_e4m3bf16_e4m3f32",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "void cutlass::device_kernel<GroupProblemShape>",
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor>", "nvshmemi_barrier_kernel",
    "_sort_chunks",
)  # fmt: skip
TEXTS: Final = (
    "gc.collect", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "optimizer.step",
    "backward", "Optimizer.step#Adam.step", "save_checkpoint", "attention", "experts", "recompute",
    "loss.item", "forward",
)  # fmt: skip
Spoil = Callable[[Random, Recording], None]


def spoiled(seed: int) -> Recording:
    """A run of a seed with one or two exceptions."""
    dice, recording = Random(f"spoiled {seed}"), draw(seed).recording
    for spoil in dice.sample(SPOILERS, dice.choice((1, 1, 2))):
        spoil(dice, recording)
    return recording


def some(dice: Random, rows: list[Row]) -> list[Row]:
    """Every row of one name, every second row, those of one step or one row."""
    named = "demangledName" if rows and "demangledName" in rows[0] else "nameId"
    name = dice.choice(rows).get(named) if rows else None
    first = dice.randrange(len(rows) + 1)
    several = (
        [row for row in rows if row.get(named) == name],
        rows[::2],
        rows[first : first + 6],
        rows[first:],
    )
    return dice.choice(several)


def _renamed(dice: Random, recording: Recording) -> None:
    name = dice.choice(NAMES)
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["demangledName"] = row["shortName"] = name


def _on_another_stream(dice: Random, recording: Recording) -> None:
    stream = dice.choice((7, 20, 41))
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["streamId"] = stream


def _by_another_thread(dice: Random, recording: Recording) -> None:
    more = dice.choice((1, 2, 9))
    for row in some(dice, recording.rows.get(CALLS, [])):
        row["globalTid"] = _number(row, "globalTid") + more


def _of_another_process(dice: Random, recording: Recording) -> None:
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["globalPid"] = recording.global_id(4_000)


def _on_another_device(dice: Random, recording: Recording) -> None:
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["deviceId"] = 1


def _without_its_launch(dice: Random, recording: Recording) -> None:
    gone = {id(row) for row in some(dice, recording.rows.get(CALLS, []))}
    recording.rows[CALLS] = [row for row in recording.rows.get(CALLS, []) if id(row) not in gone]


def _without_correlation(dice: Random, recording: Recording) -> None:
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["correlationId"] = 0


def _longer(dice: Random, recording: Recording) -> None:
    factor, table = dice.choice((0, 3, 20)), dice.choice((KERNELS, CALLS))
    for row in some(dice, recording.rows.get(table, [])):
        row["end"] = _number(row, "start") + factor * (_number(row, "end") - _number(row, "start"))


def _later(dice: Random, recording: Recording) -> None:
    table = dice.choice([*recording.rows])
    by = dice.choice((-20_000, 3_000, 200_000))
    for row in some(dice, recording.rows[table]):
        if "start" in row and row.get("end"):
            row["start"], row["end"] = _number(row, "start") + by, _number(row, "end") + by


def _in_ranges(dice: Random, recording: Recording) -> None:
    text, is_open = dice.choice(TEXTS), dice.random() < 0.1
    for row in some(dice, recording.rows.get(CALLS, [])):
        start, end, thread = (_number(row, name) for name in ("start", "end", "globalTid"))
        recording.range(text, start - 500, end + 500, pid=thread >> 24 & 0xFFFFFF, tid=thread & 0xFFFFFF)
        if is_open:
            recording.rows[RANGES][-1]["end"] = None


def _of_few_blocks(dice: Random, recording: Recording) -> None:
    blocks, registers = dice.choice((1, 24, 132, 133)), dice.choice((0, 255))
    for row in some(dice, recording.rows.get(KERNELS, [])):
        row["gridX"], row["registersPerThread"] = blocks, registers


def _twice(dice: Random, recording: Recording) -> None:
    table = dice.choice([*recording.rows])
    recording.rows[table] += [dict(row) for row in some(dice, recording.rows[table])]


def _of_another_call(dice: Random, recording: Recording) -> None:
    name = dice.choice(
        ("cudaStreamSynchronize_v3020", "cudaFree_v3020", "cudaMemcpy_v3020", "cudaGraphLaunch_v10000")
    )
    for row in some(dice, recording.rows.get(CALLS, [])):
        row["nameId"] = name


def _number(row: dict[str, Any], name: str) -> int:
    found: int = row.get(name) or 0
    return found


SPOILERS: Final[tuple[Spoil, ...]] = (
    _renamed, _on_another_stream, _by_another_thread, _of_another_process, _on_another_device,
    _without_its_launch, _without_correlation, _longer, _later, _in_ranges, _of_few_blocks, _twice,
    _of_another_call, _renamed, _in_ranges,
)  # fmt: skip
