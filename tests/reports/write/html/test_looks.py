"""What classes, kinds and reasons look like on a page: the palette's colours, told apart by all readers."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np

from reports.content.blocks import Tone
from reports.write.html.timeline import KeyLook, look
from reports.write.palette import HAIR, INK, SHEET, SOFT, TONES
from traces.names.kernels import COMM_KINDS, compute_classes

FAR = 12
"""In CIELAB, where 2.3 is just noticeable."""
_SEEN = tuple(
    np.array(seen).reshape(3, 3)
    for seen in (
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
        [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
    )
)
"""Linear RGB as most see it, with protanopia and with deuteranopia (Machado and others 2009, severity 1)."""


def sheet(name: str) -> str:
    return files("reports.write.html").joinpath(name).read_text(encoding="utf-8")


def colours() -> dict[str, str]:
    """The colours of a page on white, by name."""
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", sheet("page.css").partition("@media")[0]))


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(seen @ linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def least_distance(colour: str, other: str) -> float:
    """Of all three ways to see."""
    return min(float(np.linalg.norm(lab(colour, seen) - lab(other, seen))) for seen in _SEEN)


def test_inks_and_tones_of_a_page_are_those_of_the_palette() -> None:
    page = colours()
    assert (page["ink"], page["soft"], page["hair"], page["sheet"]) == (INK, SOFT, HAIR, SHEET)
    tones = {Tone.GOOD: "good", Tone.NOTICE: "notable", Tone.BAD: "severe"}
    assert all(page[name] == TONES[tone][0] for tone, name in tones.items())


def test_what_looks_alike_to_a_colour_blind_reader_differs_in_its_pattern() -> None:
    keys = [f"compute.{name}" for name in compute_classes()]
    keys += [f"exposed_comm.{kind}" for kind in COMM_KINDS]
    keys += ["exposed_copy.memcpy_h2d", "exposed_copy.memcpy_d2h", "exposed_copy.memset", "idle"]
    keys += ["launch_starved.launch", "launch_starved.python", "launch_starved.sync", "dependency_stalled"]
    page = colours()
    for one, other in combinations(sorted({look(key) for key in keys}), 2):
        if one.pattern == other.pattern:
            assert least_distance(page[one.colour], page[other.colour]) > FAR, (one, other)


def test_a_wait_looks_like_what_it_waits_for_and_an_unknown_class_has_a_look() -> None:
    assert look("blocking.tp") == look("comm.tp") == look("exposed_comm.tp")
    assert look("idle.launch_starved.sync") == look("launch_starved.sync")
    assert look("compute.of_tomorrow") == KeyLook("grey", "rows")
