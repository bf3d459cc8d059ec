"""The change of precision that MEM-4 and CMP-3 make: spellings, and what each recipe needs."""

from __future__ import annotations

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.fixes import configured

MEM_4 = CATALOGUE["MEM-4"]


@pytest.mark.parametrize(
    ("presets", "harness"),
    [
        (("bf16", "fp8_cs", "fp8_sc"), ("--compute_dtype fp8_sc",)),
        (("bf16", "fp8_cs"), ("--compute_dtype fp8_cs",)),
        (("bf16",), ()),
    ],
)
def test_a_run_of_bridges_scripts_gets_a_precision_that_has_a_preset(
    presets: tuple[str, ...], harness: tuple[str, ...]
) -> None:
    run = configured({"launcher.precisions": presets}, gpu="H100", stage="tuned", precision="bf16")
    assert MEM_4.knobs(run).bridge_harness == harness
    assert any("have a preset" in one.text for one in MEM_4.preconditions(run)) is not bool(harness)
