"""What a plan's first step is written for as a patch. Apart from the writer, which loads what fixes are."""

from typing import Final

FRAMEWORKS: Final = ("bridge", "megatron-lm")
