"""A log beside a configuration: which of them says what ran, and what follows for its numbers.

Rows name what they answer: W and item numbers of the audit of the guides.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from heuristics.config.about import Given
from heuristics.findings.contradictions import find_contradictions
from heuristics.guides.mfu_bands import mfu_band
from heuristics.run.run import Run
from tests.configurations.logs import iteration, log_of
from traces.settings.settings import Settings, Value, settings
from traces.training_log.log import TrainingLog
from traces.training_log.own_lines import overlaps_on

BATCH, RANKS = "train.global_batch_size", "world_size"
STEADY = tuple(iteration(index, 8000.0) for index in range(1, 9))
"""Steps of eight seconds with a global batch of 8."""


def found(log: TrainingLog, file: dict[str, Value], given: Given | None = None) -> dict[str, str]:
    """Text by id of what the log contradicts."""
    said = (log.settings or Settings()).under(settings(file, "run.yaml:1"))
    told = find_contradictions(Run(settings=said, log=log, given=given or Given()))
    return {one.id: one.text for one in told if one.id.startswith("CFG-log-")}


@pytest.mark.parametrize("file", [{BATCH: 8}, {}, {BATCH: 64, "train.rampup_batch_size": (8, 8, 1000)}])
def test_w11_the_same_batch_none_or_one_that_grows_is_no_finding(
    tmp_path: Path, file: dict[str, Value]
) -> None:
    assert found(log_of(tmp_path, *STEADY), file) == {}


@pytest.mark.parametrize(
    "line", ["[rank0]: AssertionError: something else", "ValueError: x", "3: KeyError: 'a'"]
)
def test_w16_an_error_that_none_knows_is_named_by_its_class_and_its_line(tmp_path: Path, line: str) -> None:
    log = log_of(tmp_path, *STEADY[:1], line)
    told = found(log, {})["CFG-log-unknown-error"]
    assert line.split(": ")[-2].split()[-1] in told
    assert log.unknown_error is not None
    assert log.unknown_error.line == 2


def test_w16_an_exception_of_somebodys_own_is_not_named(tmp_path: Path) -> None:
    told = found(log_of(tmp_path, "acme.secret.AcmeError: text"), {})["CFG-log-unknown-error"]
    assert "Acme" not in told


def test_item_32_an_mfu_is_placed_in_the_bands_of_the_guide() -> None:
    assert [mfu_band(mfu, "dsv3", "GB200", "mxfp8") for mfu in (0.05, 0.13, 0.16, 0.18, 0.22, 0.30)] == [
        *("below", "untuned", "between", "tuned", "tuned", "above")
    ]


DDP = (
    "INFO:Setting up DistributedDataParallel with config DistributedDataParallelConfig("
    "grad_reduce_in_fp32=False, overlap_grad_reduce=True, overlap_param_gather=False)"
)


def test_item_152_overlaps_that_the_logs_own_lines_say_are_set_up_are_read(tmp_path: Path) -> None:
    log = log_of(tmp_path, DDP, "!!! [UB] Create Userbuffers Communicator")
    assert overlaps_on(log) == {"ddp.overlap_grad_reduce": 1, "tp_comm_overlap": 2}
    assert overlaps_on(log_of(tmp_path, *STEADY)) == {}
