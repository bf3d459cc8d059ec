"""Two sides of a comparison as files: small runs and their results."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.doubles.comparison import read_back
from traces.errors import NothingToDiagnose
from traces.sections.rank import Rank

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
US = 1_000


def run_of(path: Path, *, gpus: int = 1, steps: int = 3, gemm_us: int = 700) -> Path:
    """Steps of 1 ms, less what a GEMM does not fill: 700 us on the first GPU, 50 us more on each further."""
    recording = Recording()
    for gpu in range(gpus):
        recording.gpu()
        for step in range(steps):
            start, length = step * 1_000 * US, (gemm_us + 50 * gpu) * US
            recording.range(f"iteration {step}", start, start + 900 * US, pid=1000 + gpu)
            recording.kernel(
                GEMM,
                start + 100 * US,
                start + 100 * US + length,
                launch_ns=start + 50 * US,
                device=gpu,
                pid=1000 + gpu,
            )
    write_export(path, recording)
    return path


def result_of_run(path: Path, **how: Any) -> dict[str, Any]:
    """The document of such a run, whose trace then lies at the path."""
    return diagnoser.analyze(run_of(path), ask_megatron=False, **how).to_dict()


def as_json(path: Path, document: object) -> Path:
    """A document as a file, packed where the name says so."""
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def ranks_of(path: Path) -> tuple[Rank, ...]:
    """The ranks of its diagnosis, read as an earlier result would be; none where it has no GPU work."""
    try:
        return read_back(diagnoser.analyze(path)).ranks
    except NothingToDiagnose:
        return ()
