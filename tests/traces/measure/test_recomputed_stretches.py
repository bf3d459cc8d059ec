"""How far a recomputed stretch reaches, by letters: what ran first, then what runs again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.measure.recompute_extent import Launched, stretches


@pytest.mark.parametrize(
    ("first", "again", "found"),
    [
        ("xPyz", "xPyzb", "####."),
        ("xPyz", "xPyw", "###."),
        ("xPyb", "xPyb", "###."),  # what is backward by its name
        ("xPd", "xPd", "##+"),  # it may be backward's
        ("dxP", "dxP", "+##"),
        ("xPdy", "xPdy", "####"),
        ("xPds", "xPds", "##++"),
        ("xPs", "xPs", "###"),
        ("xPdQ", "xPdQ", "####"),
        ("xPdy", "xPdQ", "##+#"),  # of another module, whose first run is not known
        ("Px", "xPx", ".##"),  # before the first of the thread there is nothing
        ("xPyxQy", "yxQybxPy", ".###.###"),  # the end of the layer before is not repeated
        ("xPy", "xPhy", "##.."),
        ("xPh", "xPh", "###"),
        ("xPh", "xPo", "##."),  # the other way
        ("xPx", "xPv", "##."),  # on another stream
    ],
)
def test_a_stretch_reaches_as_far_as_its_thread_repeats_the_first_run(
    first: str, again: str, found: str
) -> None:
    """Capitals are passes; `h` and `o` copies; `v` is `x` on another stream. `+`: not for sure."""
    run = Run()
    for place, letter in enumerate(first + again):
        name = {"h": "h2d", "o": "d2h", "v": "kernel_x"}.get(letter, f"kernel_{letter}")
        at, thread = 10 * place, int(place >= len(first))
        run.work(name, at, at + 10, launch=at - 10, thread=thread, stream=9 if letter == "v" else 7)
    letters = np.array([*first + again])
    recomputed = [len(first) + place for place, letter in enumerate(again) if letter in "PQ"]
    original = [first.find(again[place - len(first)]) for place in recomputed]
    launched = Launched(*(np.isin(letters, [*which]) for which in ("b", "d", "sho")))
    result = stretches(run.rank().activities, np.array(recomputed), np.array(original), launched)
    marks = np.where(result.sure, "#", np.where(result.widest, "+", "."))[len(first) :]
    assert "".join(marks.tolist()) == found
