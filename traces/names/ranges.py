"""NVTX range texts that name a step, or the optimizer within one."""

import re
from typing import Final

_STEP_NAMES: Final = (
    r"(?:[\w\s]*[\s_.-])?iter(?:ation)?s?[\s_#:=-]*\d+",  # iteration N: common in training loops
    r"(?:[\w\s]*[\s_.-])?steps?[\s_#:=-]*\d+",  # step N, train_step_N (NeMo AutoModel), global_step: N
    r"ProfilerStep#\d+",  # PyTorch profiler
    r"(?:train(?:ing)?[\s_])?(?:step|iteration)",  # one text for every step
    r"execute_(?:context|new|model)\S*",  # vLLM, v1/worker/gpu_worker.py: one pass of the engine
)
_STEP_NAME: Final = re.compile(r"\s*(?:" + "|".join(_STEP_NAMES) + r")\s*", re.IGNORECASE)
_OPTIMIZER_NAMES: Final = (
    r"Optimizer\.step#[\w.]+",  # torch.optim profiles each step so; its zero_grad is no end of a step
    r"(?:\w+[_.])?optimi[sz]er[\s_.-]?step(?:[\s_#:=-]*\d+)?",
    r"## optimizer ##",
)
_OPTIMIZER_NAME: Final = re.compile(r"\s*(?:" + "|".join(_OPTIMIZER_NAMES) + r")\s*", re.IGNORECASE)
_BACKWARD_NAME: Final = re.compile(r"\bautograd::engine|Backward\d*\b|\bbackward\b")
_NUMBER: Final = re.compile(r"\d+")


def is_step_name(text: str) -> bool:
    """Whether a whole range text reads as the name of a training step."""
    return _STEP_NAME.fullmatch(text) is not None and not is_optimizer_name(text)


def is_optimizer_name(text: str) -> bool:
    """Whether a whole range text, PyTorch's `, seq = ...` aside, says that an optimizer steps in it."""
    return _OPTIMIZER_NAME.fullmatch(text.split(", ")[0]) is not None


def is_backward_name(text: str) -> bool:
    """Whether all that such a range launches is backward's: an operator of autograd, or a whole pass."""
    return _BACKWARD_NAME.search(text) is not None and "forward" not in text.lower()


def family(text: str) -> str:
    """A range text with its numbers as `N`, so that `iteration 3` and `iteration 4` are one family."""
    return _NUMBER.sub("N", text.strip())
