"""What a PyTorch profiler trace says about itself and its machine: version, GPUs, rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traces.columns import NULL, Gpu, SmLimits, TraceInfo, process_of
from traces.formats import kineto_schema as schema
from traces.formats import known_texts
from traces.formats.kineto_json import Event
from traces.formats.kineto_parts import KinetoFile
from traces.formats.kineto_values import whole

_AMD_WAVE = 64
"""Threads of a wave on AMD's data-centre GPUs; a warp of NVIDIA's has 32."""


def trace_info(name: str, file: KinetoFile, left_out: Mapping[str, int]) -> TraceInfo:
    """The trace's own words that may leave it. `left_out`: what rows were not used -> how many."""
    version = whole(file.header.get("schemaVersion"))
    return TraceInfo(
        name=name,
        kind="kineto",
        exporter_version=None,
        schema=None if version == NULL else str(version),
        reader="json",
        gpus=gpus(file.header),
        missing_tables=tuple(table for table in schema.USED_TABLES if not len(file.tables[table])),
        diagnostics=tuple(f"{what}, left out: {count}" for what, count in left_out.items() if count),
        stacks=whole(file.header.get("with_stack")) == 1,
    )


def gpus(header: Mapping[str, object]) -> tuple[Gpu, ...]:
    """Every GPU the process saw, used or not, each once."""
    listed = header.get("deviceProperties")
    found = [_gpu(given) for given in listed if isinstance(given, dict)] if isinstance(listed, list) else []
    return tuple({gpu.cuda_device: gpu for gpu in reversed(found)}.values())[::-1]


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
