"""The memory that a copy reads."""

from enum import IntEnum


class Memory(IntEnum):
    """What memory a copy reads, as nsys numbers it (ENUM_CUDA_MEM_KIND); others are kept as recorded."""

    PAGEABLE = 0
    PINNED = 1
    DEVICE = 2
