"""Real recordings against truth computed independently of this program."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from tests.places import EMPTY, manifest
from traces.errors import NothingToDiagnose

REPORTS = ("jax_3090_2022.nsys-rep", "rtx6000_2021.qdrep")
WHOLE = ("kernel_count", "span_ns", "busy_union_ns", "comm_union_ns", "exposed_comm_ns")


def truth_of(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    devices: dict[str, dict[str, Any]] = truth[name]["devices"]
    return devices


def check_against_truth(document: dict[str, Any], devices: dict[str, dict[str, Any]]) -> None:
    assert {str(rank["device"]) for rank in document["ranks"]} == set(devices)
    assert len(document["ranks"]) == len(devices)
    for rank in document["ranks"]:
        truth = devices[str(rank["device"])]
        assert {key: rank["totals"][key] for key in WHOLE} == {key: truth[key] for key in WHOLE}
        assert rank["totals"]["kernel_work_ns"] == truth["kernel_total_ns"]
        check_adds_up(rank)


def check_adds_up(rank: dict[str, Any]) -> None:
    budget = rank["budget_ns"]
    assert budget["window"] == sum(end - start for start, end in rank["windows_ns"])
    assert budget["window"] == sum(value for key, value in budget.items() if key != "window")
    assert budget["compute"] == sum(rank["compute_by_class_ns"].values())
    assert budget["exposed_comm"] == sum(rank["exposed_comm_by_kind_ns"].values())
    assert budget["exposed_copy"] == sum(rank["exposed_copy_by_kind_ns"].values())


def test_every_sqlite_recording_gives_its_true_totals_and_is_not_touched(recordings: Path) -> None:
    names = [name for name in manifest(recordings) if name.endswith(".sqlite")]
    assert len(names) == 8
    for name in names:
        path = recordings / name
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        if name in EMPTY:
            with pytest.raises(NothingToDiagnose, match="neither kernels nor graph rows"):
                diagnoser.analyze(path)
        else:
            check_against_truth(diagnoser.analyze(path).to_dict(), truth_of(recordings, name))
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before
        assert not list(recordings.glob(f"{name}-*"))


@pytest.mark.parametrize("name", REPORTS)
def test_reports_give_their_true_totals_through_the_real_nsys(
    recordings: Path, real_nsys: str, tmp_path: Path, name: str
) -> None:
    document = diagnoser.analyze(recordings / name, nsys=real_nsys, cache_dir=tmp_path).to_dict()
    assert document["traces"][0]["kind"] == "nsys-report"
    check_against_truth(document, truth_of(recordings, name))


def test_a_report_without_gpu_work_says_what_to_record(
    recordings: Path, real_nsys: str, tmp_path: Path
) -> None:
    with pytest.raises(NothingToDiagnose, match="nsys profile --trace=cuda,nvtx"):
        diagnoser.analyze(recordings / "tiny.nsys-rep", nsys=real_nsys, cache_dir=tmp_path)
