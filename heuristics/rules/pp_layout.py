"""Strings of pipeline_model_parallel_layout: the layers of each virtual stage, as Megatron-Core has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from traces.limits import Limit

LONGEST: Final = Limit(
    100_000, "letters", "ours: a thousand layers of a hundred letters; a longer one is nobody's layout"
)
_GROUPS: Final = re.compile(r"\(([^)]+)\)\*(\d+)")
_LETTERS: Final = re.compile(r"(.)\*(\d+)")
_KNOWN: Final = frozenset("EtmL|")


@dataclass(frozen=True, slots=True)
class StageLayout:
    """Stages in order, each with its letters: E embedding, t decoder layer, m MTP layer, L loss."""

    stages: tuple[str, ...]

    def virtual_stages(self, pipeline_stages: int) -> int | None:
        """Virtual stages of one rank; None where the stages do not divide."""
        return None if len(self.stages) % pipeline_stages else len(self.stages) // pipeline_stages

    def count(self, letter: str) -> int:
        """How often a letter stands in all stages."""
        return sum(stage.count(letter) for stage in self.stages)


def parse_layout(text: str) -> StageLayout | None:
    """The stages of a layout string; None where it has another letter, or grows beyond reason.

    Commas are decoration; `(tt|)*3` and `t*3` repeat. Source: parse_str_to_list of
    Megatron-Core, transformer/pipeline_parallel_layer_layout.py.
    """
    unrolled = text.replace(",", "")
    for pattern in (_GROUPS, _LETTERS):
        length = len(unrolled) + sum(
            len(found[1]) * min(int(found[2][:9]), 10**9) for found in pattern.finditer(unrolled)
        )
        if length > LONGEST.value:
            return None
        unrolled = pattern.sub(lambda found: found[1] * int(found[2]), unrolled)
    return StageLayout(tuple(unrolled.split("|"))) if set(unrolled) <= _KNOWN else None
