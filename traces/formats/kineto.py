"""The PyTorch profiler's JSON (Kineto) -> Columns.

Times stay on the trace's own clock: newer traces say with `baseTimeNanoseconds` what to add for UNIX time,
older ones are UNIX time already. A trace is of one process, so its GPU rows, which name only their device,
are that process's; where calls of several were merged into one file, they are nobody's.
"""

from pathlib import Path

from traces.columns import NULL, Columns
from traces.formats import kineto_activities, kineto_collectives, kineto_info, known_texts
from traces.formats import kineto_schema as schema
from traces.formats.kineto_parts import load
from traces.formats.kineto_rows import joined, table
from traces.progress import Progress, silent


def read_kineto(path: Path, progress: Progress = silent) -> Columns:
    """Read a trace, packed by gzip or not, into columns.

    Raises `NotATrace` for JSON that is no such trace, `DamagedTrace` for a file that breaks off.
    """
    file = load(path, progress)
    gpu, without_device = kineto_activities.placed(file.tables)
    host, without_times = kineto_activities.timed(file.tables)
    threads = kineto_activities.Threads(host)
    processes = kineto_activities.processes(host, threads)
    process = processes[0] if len(processes) == 1 else NULL
    kernels, kernel_names = kineto_activities.kernels(gpu[schema.KERNELS], process)
    calls, call_names = kineto_activities.calls(host[schema.CALLS], threads)
    ranges, texts = kineto_activities.ranges(
        joined([host[schema.ANNOTATIONS], host[schema.OPERATORS]]), threads
    )
    left_out = {"GPU rows without a device": without_device, "host rows without times": without_times}
    return Columns(
        info=kineto_info.trace_info(known_texts.trace_name(path), file, gpu[schema.KERNELS], left_out),
        kernels=kernels,
        copies=kineto_activities.copies(gpu[schema.MEMCPY], gpu[schema.MEMSET], process),
        replays=kineto_activities.no_rows(),
        calls=calls,
        ranges=ranges,
        events=kineto_activities.event_records(file.tables[schema.EVENTS], host[schema.SYNCS], process),
        syncs=kineto_activities.synchronisations(host[schema.SYNCS], process),
        os_calls=kineto_activities.host_spans(table((), schema.OVERHEADS), threads),
        overheads=kineto_activities.host_spans(host[schema.OVERHEADS], threads),
        thread_names={},
        kernel_names=kernel_names,
        call_names=call_names,
        range_texts=texts,
        gpu_of={},
        rank_of=kineto_info.ranks(file.header, processes),
        world_size=kineto_info.world_size(file.header),
        session_start_ns=kineto_info.session_start_ns(file.header),
        collectives=kineto_collectives.collectives(gpu[schema.KERNELS], file.header),
        memory=kineto_activities.memory_use(file.tables[schema.MEMORY], threads),
    )
