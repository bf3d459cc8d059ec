"""The PyTorch profiler's JSON (Kineto) -> Columns.

Times stay on the trace's own clock: newer traces say with `baseTimeNanoseconds` what to add for
UNIX time, older ones are UNIX time already. A trace is of one process, so its GPU rows, which name
only their device, are that process's; where calls of several were merged into one file, they are
nobody's.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from traces.arrays import distinct
from traces.columns import NULL, Columns, Gpu, SmLimits, TraceInfo, process_of
from traces.formats import kineto_activities, kineto_collectives, kineto_problems, known_texts
from traces.formats import kineto_schema as schema
from traces.formats.kineto_json import Event, load
from traces.formats.kineto_rows import joined, objects, table, whole
from traces.formats.tables import Table, left_out
from traces.limits import MOST_RANKS, Limit
from traces.names.file_names import recorder_of, told_path
from traces.names.gpus import WARP_THREADS
from traces.progress import Progress, silent

SAME_COUNT: Final = Limit(
    0.004,
    "fraction of the SMs",
    "ours, half of an SM of 148: six decimals of one warp are off by 0.01 %",
)
_AMD_WAVE = 64
"""Threads of a wave on AMD's data-centre GPUs; a warp of NVIDIA's has 32."""


def read_kineto(path: Path, progress: Progress = silent) -> Columns:
    """Read a trace, packed by gzip or not, into columns.

    Raises `NotATrace` for JSON that is no such trace, `DamagedTrace` for a file that breaks off.
    """
    header, tables = load(path, progress)
    gpu, without_device = kineto_activities.placed(tables)
    host, without_times = kineto_activities.timed(tables)
    threads = kineto_activities.Threads(host)
    processes = kineto_activities.processes(host, threads)
    process = processes[0] if len(processes) == 1 else NULL
    kernels, kernel_names = kineto_activities.kernels(gpu[schema.KERNELS], process)
    calls, call_names = kineto_activities.calls(host[schema.CALLS], threads)
    ranges, texts = kineto_activities.ranges(
        joined([host[schema.ANNOTATIONS], host[schema.OPERATORS]]), threads
    )
    # graph replays are recorded kernel by kernel, calls of the OS not
    nothing = table((), schema.KERNELS)
    version = whole(header.get("schemaVersion"))
    distributed = header.get("distributedInfo")
    run = distributed if isinstance(distributed, dict) else {}
    rank = _of_run(run, "rank")
    return Columns(
        info=TraceInfo(
            name=told_path(path),
            kind="kineto",
            exporter_version=None,
            schema=None if version == NULL else str(version),
            reader="json",
            gpus=_gpus(header) or tuple(_unlisted_gpus(gpu[schema.KERNELS])),
            missing_tables=tuple(name for name in schema.USED_TABLES if not len(tables[name])),
            diagnostics=(
                *left_out("GPU rows without a device", without_device),
                *left_out("host rows without times", without_times),
            ),
            stacks=whole(header.get("with_stack")) == 1,
            own_names=recorder_of(path),
        ),
        kernels=kernels,
        copies=kineto_activities.copies(gpu[schema.MEMCPY], gpu[schema.MEMSET], process),
        replays=kineto_activities.gpu_rows(nothing, NULL),
        calls=calls,
        ranges=ranges,
        events=kineto_activities.event_records(tables[schema.EVENTS], host[schema.SYNCS], process),
        syncs=kineto_activities.synchronisations(host[schema.SYNCS], process),
        os_calls=kineto_activities.host_spans(nothing, threads),
        overheads=kineto_activities.host_spans(host[schema.OVERHEADS], threads),
        thread_names={},
        kernel_names=kernel_names,
        call_names=call_names,
        range_texts=texts,
        gpu_of={},
        rank_of={} if rank is None else dict.fromkeys(map(process_of, processes), rank),
        world_size=_of_run(run, "world_size") or None,
        session_start_ns=_count(header, "baseTimeNanoseconds") or 0,
        collectives=kineto_collectives.collectives(gpu[schema.KERNELS], header),
        memory=kineto_activities.memory_use(tables[schema.MEMORY], threads),
        frames=kineto_activities.host_spans(host[schema.FRAMES], threads)
        if len(host[schema.FRAMES])
        else None,
        problems=kineto_problems.problems(
            host[schema.OPERATORS].texts["problem"], len(host[schema.ANNOTATIONS])
        ),
    )


def _gpus(header: Mapping[str, object]) -> tuple[Gpu, ...]:
    """Every GPU the process saw, used or not, each once."""
    gpus = dict[int | None, Gpu]()
    for gpu in map(_gpu, objects(header.get("deviceProperties"))):
        gpus.setdefault(gpu.cuda_device, gpu)
    return tuple(gpus.values())


def _unlisted_gpus(kernels: Table) -> Iterator[Gpu]:
    """GPUs of a trace that lists none, with the SMs that its launches were divided by.

    The profiler writes blocks x threads / 32 / SMs of each kernel ("warps per SM", pytorch/kineto,
    CuptiActivity.cpp). A GPU is left out where its kernels do not agree on one whole number.
    """
    shape = np.hstack([kernels["grid"], kernels["block"]])
    launches_told = (shape > 0).all(axis=1) & (kernels["warps_per_1e6_sms"] > 0)
    warps = shape[launches_told].prod(axis=1, dtype=float) / WARP_THREADS
    counts = warps * 1e6 / kernels["warps_per_1e6_sms"][launches_told]
    devices = kineto_activities.device_ids(kernels)[launches_told]
    for device in distinct(devices).tolist():
        counts_here = counts[devices == device]
        count = round(float(np.median(counts_here)))
        if count and (np.abs(counts_here / count - 1) <= SAME_COUNT.value).all():
            yield Gpu(None, device, None, count, None, None)


def _gpu(device: Event) -> Gpu:
    major, minor = _count(device, "computeMajor"), _count(device, "computeMinor")
    threads, warp = _count(device, "maxThreadsPerMultiprocessor"), _count(device, "warpSize")
    name = known_texts.gpu_name(device.get("name"))
    # HIP's numbers are no CUDA capability
    cuda = not (name or "").startswith("AMD") and warp != _AMD_WAVE
    return Gpu(
        # the CUDA ordinal counts the visible devices; the machine's own number is not told
        gpu_id=None,
        cuda_device=_count(device, "id"),
        name=name,
        sm_count=_count(device, "numSms") or None,
        capability=f"{major}.{minor}" if cuda and major and minor is not None else None,
        memory_bytes=_count(device, "totalGlobalMem") or None,
        limits=SmLimits(
            warps=threads // warp if threads and warp else None,
            blocks=None,
            registers=_count(device, "regsPerMultiprocessor") or None,
            shared_bytes=_count(device, "sharedMemPerMultiprocessor") or None,
        ),
    )


def _of_run(run: Mapping[str, object], key: str) -> int | None:
    """A rank or a number of them, where a run may have it."""
    number = _count(run, key)
    if number is None or number > MOST_RANKS.value:
        return None
    return number


def _count(given: Mapping[str, object], key: str) -> int | None:
    number = whole(given.get(key))
    if number >= 0:
        return number
    return None
