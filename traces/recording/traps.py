"""Ways in which a recording or its export went wrong, as facts; what they mean is said
elsewhere.
"""

from enum import Enum


class Trap(Enum):
    """One such way. The number that comes with each is how many rows show it."""

    UNREAD_RANGES = "domains of NVTX, but no range in them"
    OPEN_RANGES = "NVTX ranges that were open when the recording ended"
    PARTIAL_EXPORT = "an export of some tables or of some of the time"
    NO_PAYLOADS = "calls of NCCL without their payloads"
    CPU_SAMPLES = "samples of the CPU, or scheduling of threads"
