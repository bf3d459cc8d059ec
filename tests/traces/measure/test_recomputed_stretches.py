"""How far a recomputed stretch reaches, by letters: what ran first, then what runs again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.measure.recompute_extent import StretchLimits, stretches
from traces.names.kernels import COMM_KINDS

ROWS = """
xPyz xPyzb ####.   xPyz xPyw ###.   xPyb xPyb ###.   xPd xPd ##+   dxP dxP +##   xPdy xPdy ####
xPds xPds ##++   xPs xPs ###   xPdQ xPdQ ####   Px xPx .##   xPyxQy yxQybxPy .###.###
xPy xPhy ##..   xPh xPh ###   xPh xPo ##.   xPx xPv ##.   xPdy xPdQ ##+#   xPg xPg ##.   xPr xPr ###
"""
"""What ran first, what runs again, and what of that is found: `#` for sure, `+` perhaps.

Capitals are passes, the last Q without a known first run; `b` is backward by its name, `d` may be backward's,
`s` is silent; `h` and `o` are copies, `v` is `x` on another stream, `g` gathers parameters, `r` reduces.
"""


NAMES = {"h": "h2d", "o": "d2h", "v": "kernel_x", "g": "all_gather", "r": "all_reduce"}


@pytest.mark.parametrize(("first", "again", "found"), [*zip(*[iter(ROWS.split())] * 3, strict=True)])
def test_a_stretch_reaches_as_far_as_its_thread_repeats_the_first_run(
    first: str, again: str, found: str
) -> None:
    run = Run()
    for place, letter in enumerate(first + again):
        name = NAMES.get(letter, f"kernel_{letter}")
        at, thread = 10 * place, int(place >= len(first))
        run.work(name, at, at + 10, launch=at - 10, thread=thread, stream=9 if letter == "v" else 7)
    letters = np.array([*first + again])
    recomputed = [len(first) + place for place, letter in enumerate(again) if letter in "PQ"]
    original = [first.find(again[place - len(first)]) for place in recomputed]
    launched = StretchLimits(*(np.isin(letters, [*which]) for which in ("b", "d", "sho")))
    rows = run.rank().activities
    rows.key[letters == "g"] = COMM_KINDS.index("dp_all_gather")
    result = stretches(rows, np.array(recomputed), np.array(original), launched)
    marks = np.where(result.sure, "#", np.where(result.widest, "+", "."))[len(first) :]
    assert "".join(marks.tolist()) == found
