"""Real recordings compared: each with itself is noise of nothing."""

from __future__ import annotations

from pathlib import Path

from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.rows import attribute, layers
from tests.doubles.sides import ranks_of


def test_every_recording_against_itself_is_noise_of_nothing(recordings: Path) -> None:
    paths = [path for path in sorted(recordings.iterdir()) if path.name.endswith((".sqlite", ".json.gz"))]
    ranks = [rank for path in paths for rank in ranks_of(path)]
    assert len(ranks) >= len(paths) - 1  # one has no kernels
    for rank in ranks:
        found = attribute(rank, rank)
        (noise,) = found.rows
        assert (found.step_delta_ns, noise.row, noise.delta_ns, noise.parts) == (0, "noise", 0, ())
        assert all(one.delta_ns == 0 for one in found.reasons)
        assert found.modules == ()
        assert compare_kernels(rank, rank) == ()
        assert all(layer.delta_ns == 0 for layer in layers(rank, rank))
