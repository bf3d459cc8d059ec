"""NVTX range texts that name a training step."""

from __future__ import annotations

import re
from typing import Final

_STEP_NAMES: Final = (
    r"(?:[\w\s]*[\s_.-])?iter(?:ation)?s?[\s_#:=-]*\d+",  # iteration N: common in training loops
    r"(?:[\w\s]*[\s_.-])?steps?[\s_#:=-]*\d+",  # step N, train_step_N (NeMo AutoModel), global_step: N
    r"ProfilerStep#\d+",  # PyTorch profiler
    r"(?:train(?:ing)?[\s_])?(?:step|iteration)",  # one text for every step
)
_STEP_NAME: Final = re.compile(r"\s*(?:" + "|".join(_STEP_NAMES) + r")\s*", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")


def is_step_name(text: str) -> bool:
    """Whether a whole range text reads as the name of a training step."""
    return _STEP_NAME.fullmatch(text) is not None


def family(text: str) -> str:
    """A range text with its numbers as `N`, so that `iteration 3` and `iteration 4` are one family."""
    return _NUMBER.sub("N", text.strip())
