"""What a PyTorch profiler trace says about itself and its machine: version, GPUs, rank."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from traces.columns import NULL, Gpu, SmLimits, TraceInfo, distinct, process_of
from traces.formats import kineto_schema as schema
from traces.formats import known_texts
from traces.formats.kineto_activities import device_ids
from traces.formats.kineto_json import Event
from traces.formats.kineto_parts import KinetoFile
from traces.formats.kineto_rows import Table, whole
from traces.limits import Limit
from traces.names.gpus import WARP_THREADS

SAME_COUNT: Final = Limit(
    0.004, "fraction of the SMs", "ours, half of an SM of 148: six decimals of one warp are off by 0.01 %"
)
_AMD_WAVE = 64
"""Threads of a wave on AMD's data-centre GPUs; a warp of NVIDIA's has 32."""


def trace_info(name: str, file: KinetoFile, kernels: Table, left_out: Mapping[str, int]) -> TraceInfo:
    """The trace's own words that may leave it. `left_out`: what rows were not used -> how many."""
    version = whole(file.header.get("schemaVersion"))
    return TraceInfo(
        name=name,
        kind="kineto",
        exporter_version=None,
        schema=None if version == NULL else str(version),
        reader="json",
        gpus=gpus(file.header) or unlisted_gpus(kernels),
        missing_tables=tuple(table for table in schema.USED_TABLES if not len(file.tables[table])),
        diagnostics=tuple(f"{what}, left out: {count}" for what, count in left_out.items() if count),
        stacks=whole(file.header.get("with_stack")) == 1,
    )


def gpus(header: Mapping[str, object]) -> tuple[Gpu, ...]:
    """Every GPU the process saw, used or not, each once."""
    listed = header.get("deviceProperties")
    found = [_gpu(given) for given in listed if isinstance(given, dict)] if isinstance(listed, list) else []
    return tuple({gpu.cuda_device: gpu for gpu in reversed(found)}.values())[::-1]


def unlisted_gpus(kernels: Table) -> tuple[Gpu, ...]:
    """GPUs of a trace that lists none, with the SMs that its launches were divided by.

    The profiler writes blocks x threads / 32 / SMs of each kernel ("warps per SM", pytorch/kineto,
    CuptiActivity.cpp). A GPU is left out where its kernels do not agree on one whole number.
    """
    shape = np.hstack([kernels["grid"], kernels["block"]])
    told = (shape > 0).all(axis=1) & (kernels["warps_per_1e6_sms"] > 0)
    warps = shape[told].prod(axis=1, dtype=float) / WARP_THREADS
    counts, devices = warps * 1e6 / kernels["warps_per_1e6_sms"][told], device_ids(kernels)[told]
    found = []
    for device in distinct(devices).tolist():
        here = counts[devices == device]
        count = round(float(np.median(here)))
        if count and (np.abs(here / count - 1) <= SAME_COUNT.value).all():
            found.append(Gpu(None, device, None, count, None, None))
    return tuple(found)


def ranks(header: Mapping[str, object], process_gids: Sequence[int]) -> dict[int, int]:
    """Process id -> rank, where the run was distributed; one trace is of one rank."""
    distributed = header.get("distributedInfo")
    rank = _count(distributed, "rank") if isinstance(distributed, dict) else None
    return {} if rank is None else {process_of(gid): rank for gid in process_gids}


def world_size(header: Mapping[str, object]) -> int | None:
    """How many ranks the run had."""
    distributed = header.get("distributedInfo")
    return (_count(distributed, "world_size") or None) if isinstance(distributed, dict) else None


def session_start_ns(header: Mapping[str, object]) -> int:
    """What to add for UNIX time: older traces, which do not say, have it already."""
    return _count(header, "baseTimeNanoseconds") or 0


def _gpu(given: Event) -> Gpu:
    major, minor = _count(given, "computeMajor"), _count(given, "computeMinor")
    threads, warp = _count(given, "maxThreadsPerMultiprocessor"), _count(given, "warpSize")
    name = known_texts.gpu_name(given.get("name"))
    cuda = not (name or "").startswith("AMD") and warp != _AMD_WAVE  # HIP's numbers are no CUDA capability
    return Gpu(
        gpu_id=None,  # the CUDA ordinal counts the visible devices; the machine's own number is not told
        cuda_device=_count(given, "id"),
        name=name,
        sm_count=_count(given, "numSms") or None,
        capability=f"{major}.{minor}" if cuda and major and minor is not None else None,
        memory_bytes=_count(given, "totalGlobalMem") or None,
        limits=SmLimits(
            warps=threads // warp if threads and warp else None,
            blocks=None,
            registers=_count(given, "regsPerMultiprocessor") or None,
            shared_bytes=_count(given, "sharedMemPerMultiprocessor") or None,
        ),
    )


def _count(given: Mapping[str, object], key: str) -> int | None:
    number = whole(given.get(key))
    return number if number >= 0 else None
