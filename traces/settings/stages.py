"""Pipeline layouts such as `Et*3|(tt|)*29m|L`.

Read as megatron/core/transformer/pipeline_parallel_layer_layout.py does.
"""

import re
from collections.abc import Sequence
from typing import Final

from traces.limits import Limit

LONGEST: Final = Limit(4096, "letters", "ours: no model has so many layers")
LETTERS: Final = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}


def unrolled(layout: str) -> str | None:
    """The layout with its repetitions written out; None where it is none."""
    text = layout.strip().strip("'\"").replace(",", "")
    for pattern in (r"\(([^()]+)\)\*(\d{1,4})", r"([^()])\*(\d{1,4})"):
        longer = sum(len(found[1]) * int(found[2]) for found in re.finditer(pattern, text))
        if longer + len(text) > LONGEST.value:
            return None
        text = re.sub(pattern, lambda found: found[1] * int(found[2]), text)
    return text if re.fullmatch(r"[EtmL|]+", text) else None


def stage_count(layout: str) -> int | None:
    """Pipeline stages times virtual stages of a layout; None where it is none."""
    text = unrolled(layout)
    return None if text is None else text.count("|") + 1


def layout_of(stages: Sequence[Sequence[str]]) -> str | None:
    """Megatron-Bridge's list of stages in letters; None where a layer is not one of the four kinds."""
    if any(layer not in LETTERS for stage in stages for layer in stage):
        return None
    return "|".join("".join(LETTERS[layer] for layer in stage) for stage in stages)


def fullest_rank(layout: str, ranks: int) -> int | None:
    """Layers of the rank that computes most, MTP and loss counted as layers; None where it is no layout."""
    text = unrolled(layout)
    if text is None:
        return None
    stages = [len(stage.replace("E", "")) for stage in text.split("|")]
    return max(sum(stages[rank::ranks]) for rank in range(ranks))
