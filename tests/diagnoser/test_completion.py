"""A shell completes commands, formats, words of `explain`, scenarios and patches."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.places import ROOT

PROGRAM = [sys.executable, "-m", "diagnoser"]


def completed(line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    place = str(len(line.split(" ")) - 1)
    asked = {"COMP_WORDS": line, "COMP_CWORD": place, "_MOE_DIAG_COMPLETE": "complete_bash"}
    done = subprocess.run(
        PROGRAM, capture_output=True, text=True, env={**os.environ, **asked}, cwd=ROOT, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(("line", "offered"), [
    *(("moe-diag an", ["analyze"]), ("moe-diag analyze -f per", ["perfetto"])),
    ("moe-diag check-config run.yaml --emit-config ", ["bridge", "megatron-lm"]),
    ("moe-diag explain COM-1", ["COM-1", "COM-10", "COM-11", "COM-12", "COM-13", "COM-14", "COM-15"]),
    ("moe-diag explain token_c", ["token_count_sync"]),
    ("moe-diag explain CFG-flex", ["CFG-flex-type", "CFG-flex-backend"]),
    *(("moe-diag capture --for me", ["memory", "metrics"]), ("moe-diag demo host_o", ["host_overhead"])),
    ("moe-diag analyze run", []),
])  # fmt: skip
def test_bash_is_offered_what_fits(line: str, offered: list[str]) -> None:
    found = completed(line)
    assert set(offered) <= set(found)
    assert found == [] or offered  # files are completed by bash itself
