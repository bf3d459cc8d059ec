"""What NCCL said of its calls: how many, how much, on how many communicators, by operation."""

from msgspec import UNSET

from traces.columns import NULL, Columns, distinct
from traces.sections.trace import Messages


def measure_messages(columns: Columns) -> tuple[Messages, ...] | None:
    """NCCL's messages of a trace, by operation; None where the export holds no payloads."""
    calls = columns.nccl_calls
    if calls is None:
        return None
    result = []
    for code, name in enumerate(calls.names):
        mine = calls.name == code
        size, peer = calls.payloads.size_bytes[mine], calls.payloads.peer[mine]
        communicator = calls.payloads.communicator[mine]
        peers = len(distinct(peer[peer != NULL]))
        result.append(
            Messages(
                name,
                int(mine.sum()),
                int(size[size != NULL].sum()),
                len(distinct(communicator[communicator != NULL])),
                peers or UNSET,
            )
        )
    return tuple(result)
