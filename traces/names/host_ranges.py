"""NVTX range texts that say what a host thread is busy with."""

import re
from functools import cache
from typing import Final

_ANY: Final = r"(?:sav|load|writ|restor|stor)(?:e|ing|es)?"
HOST_RANGES: Final[dict[str, re.Pattern[str]]] = {
    cause: re.compile(pattern, re.IGNORECASE)
    for cause, pattern in {
        "evaluation": r"(?<![a-z:])(?:eval(?:uat(?:e|ion|ing))?|validat(?:e|ion|ing))"
        r"(?![a-z]|_f(?:unction|rame))",
        "logging": r"(?<![a-z])(?:logging|log[\s_-](?:metrics|stats|scalars|step|loss))"
        r"|tensorboard|wandb|mlflow|metrics[:\s_-]+(?:publish|log|write)",
        "data": r"data[\s_]?loader|data[\s_]?(?:load|fetch|iter)\w*|(?:get|next|load|fetch)[\s_]?batch"
        r"|batch[\s_]?(?:load|fetch)",
        "checkpoint": rf"(?<![a-z])(?:async[\s_-])?{_ANY}[\s_-]+(?:\w+[\s_-])?(?:checkpoint|ckpt)"
        rf"|(?:checkpoint|ckpt)(?:ing)?[\s:._-]+{_ANY}(?![a-z])|state_dict",
        "lazy_init": r"nvrtc|compil(?:e(?![dr])|ation|ing)",
        "gc": r"(?<![a-z])(?:gc|garbage[\s_-]?collect\w*)(?![a-z])",
    }.items()
}
"""Cause of a late launch -> the texts that name it, the weakest first: a later one says more of the moment.

`lazy_init` is compilation, by NVRTC or any just-in-time compiler; that a compiled region runs is none of it.
Activation checkpoints (`CheckpointFunction`) save nothing to disk, and autograd's `evaluate_function` is no
evaluation.
"""


@cache
def cause_of_range(text: str) -> str | None:
    """What a range says that its thread does, a key of `HOST_RANGES`; None where it says none of them."""
    return next((cause for cause in reversed(HOST_RANGES) if HOST_RANGES[cause].search(text)), None)
