"""FLOP of real recordings, counted a second way: from the JSON, call by call, with plain loops."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import diagnoser

FOLDER = Path(os.environ.get("MOE_DIAG_TRACES", "/nowhere"))
RECORDINGS = (
    "hta_trace_diff_test_test.json.gz",
    "tl_moe_01_many_experts_few_tokens.json.gz",
    "tl_moe_04_top2_dense.json.gz",
    "tl_moe_05_large_capacity.json.gz",
    "real/tl_eager.json.gz",
    "real/tl_mi300_ddp_resnet18.json.gz",
    "real/tl_resnet_act_checkpoint.json.gz",
    *(f"added/dlrm8/worker{number}.pt.trace.json.gz" for number in (0, 3)),
)
NOT_COMPUTE = ("nccl", "rccl")
Event = dict[str, Any]


def by_hand(event: Event) -> int:
    """FLOP of one operator, by the definition of each."""
    name, args = event["name"], event["args"]
    dims: list[list[int]] = args["Input Dims"]
    values: list[str] = args.get("Concrete Inputs", [])
    if name == "aten::mm":
        return 2 * dims[0][0] * dims[0][1] * dims[1][1]
    if name == "aten::addmm":
        return 2 * dims[1][0] * dims[1][1] * dims[2][1]
    if name == "aten::bmm":
        return 2 * dims[0][0] * dims[0][1] * dims[0][2] * dims[1][2]
    if name == "aten::convolution":
        image, filter_ = dims[0], dims[1]
        stride, padding, dilation = (json.loads(values[place]) for place in (3, 4, 5))
        flop = 2 * image[0] * filter_[0] * filter_[1] * filter_[2] * filter_[3]
        for side in (0, 1):
            reach = dilation[side] * (filter_[2 + side] - 1) + 1
            flop *= (image[2 + side] + 2 * padding[side] - reach) // stride[side] + 1
        return flop
    if name == "aten::convolution_backward":
        out, filter_ = dims[0], dims[2]
        once = 2 * out[0] * out[1] * out[2] * out[3] * filter_[1] * filter_[2] * filter_[3]
        return once * values[10].strip("[]").split(", ")[:2].count("True")
    return 0


def counted_by_hand(path: Path, windows: list[tuple[float, float]]) -> tuple[int, int]:
    """FLOP, and operators, whose first kernel starts in the windows (us, from the file's own zero)."""
    with gzip.open(path, "rt", errors="replace") as file:
        document = json.loads(file.read(), strict=False)
    events = document["traceEvents"]
    operators: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    calls: dict[int, Event] = {}
    for event in events:
        category, args = event.get("cat"), event.get("args") or {}
        if category == "cpu_op" and any(args.get("Input Dims") or []) and by_hand_knows(event):
            operators[event["pid"], event["tid"]].append(event)
        if category in ("cuda_runtime", "cuda_driver") and "correlation" in args:
            calls.setdefault(args["correlation"], event)
    first: dict[int, tuple[float, Event]] = {}
    for kernel in events:
        if kernel.get("cat") != "kernel" or any(word in kernel["name"].lower() for word in NOT_COMPUTE):
            continue
        call = calls.get(kernel["args"]["correlation"])
        if call is None:
            continue
        at = call["ts"]
        around = [
            one for one in operators[call["pid"], call["tid"]] if one["ts"] <= at < one["ts"] + one["dur"]
        ]
        if around:
            inner = min(around, key=lambda one: one["dur"])
            start = min(first.get(id(inner), (kernel["ts"], inner))[0], kernel["ts"])
            first[id(inner)] = (start, inner)
    inside = [one for start, one in first.values() if any(begin <= start < end for begin, end in windows)]
    return sum(map(by_hand, inside)), len(inside)


def by_hand_knows(event: Event) -> bool:
    names = ("aten::mm", "aten::addmm", "aten::bmm", "aten::convolution", "aten::convolution_backward")
    return event["name"] in names


@pytest.mark.parametrize("recording", RECORDINGS)
def test_flop_of_real_recordings_are_those_counted_by_hand(recording: str) -> None:
    path = FOLDER / recording
    if not path.exists():
        pytest.skip("MOE_DIAG_TRACES names no folder with this recording")
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    windows = [(begin / 1000, end / 1000) for begin, end in rank["windows_ns"]]
    flop, count = counted_by_hand(path, windows)
    operators = rank["rates"]["matrix"]["operators"]
    assert flop > 0
    assert sum(one["flop"] for one in operators) == pytest.approx(flop, rel=0.001)
    assert sum(one["operator_count"] for one in operators) == pytest.approx(count, rel=0.001)


def test_a_recording_without_shapes_has_no_rates_of_products() -> None:
    path = FOLDER / "real/resnet50_workers0.pt.trace.json.gz"
    if not path.exists():
        pytest.skip("MOE_DIAG_TRACES names no folder with this recording")
    result = diagnoser.analyze(path).to_dict()
    assert result["ranks"][0]["rates"]["matrix"] is None
    (gap,) = (one for one in result["missing"] if one["path"] == "ranks[0].rates.matrix")
    assert "record_shapes=True" in gap["cure"]
