"""What makes a run wait, in the words of its document."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Why ranks wait for each other."""

    SLOW_DEVICE = "slow_device"
    """One rank's kernels take longer than those of ranks like it."""
    SLOW_HOST = "slow_host"
    """One rank's GPU waits for its host, time and again."""
    SLOW_LINK = "slow_link"
    """One rank arrives with the others and moves its data longer."""
    ROUTING_IMBALANCE = "routing_imbalance"
    """Tokens are spread unevenly: always to one rank, or to another by layer and step."""
    ROTATING_JITTER = "rotating_jitter"
    """Ranks are late in single steps, now this one and now that, without uneven tokens."""
    DATA_LOADER = "data_loader"
    """One rank begins steps late: its host had no batch."""
    PIPELINE_IMBALANCE = "pipeline_imbalance"
    """One pipeline stage has more layers than the others."""
    NONE = "none"
    """No rank is late by more than ranks of a healthy run are."""
