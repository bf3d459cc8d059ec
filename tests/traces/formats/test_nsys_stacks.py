"""Stacks of an export as spans of functions: samples for the time around them, others for their call."""

from __future__ import annotations

from pathlib import Path

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.recordings.inputs import changed
from traces.columns import HostSpans
from traces.formats.open import read_trace

TRAIN = [("_PyEval_EvalFrameDefault", "/usr/bin/python3.12"), ("step", "/home/eve/train.py")]
COPY = [
    ("0x7f00", "[Unknown]"),
    ("void at::native::copy_kernel<float>(at::Tensor)", "/opt/lib/libtorch_cpu.so"),
    *TRAIN,
]
PID = 1000


def recording() -> Recording:
    found = Recording()
    found.kernel("gemm", 9_000_000, 9_100_000, device=0, stream=7, pid=PID)
    return found


def frames(path: Path) -> list[tuple[str, int, int]]:
    found = read_trace(path).frames
    assert isinstance(found, HostSpans)
    names = (found.names[code] for code in found.name.tolist())
    return sorted(zip(names, found.start_ns.tolist(), found.end_ns.tolist(), strict=True))


def test_a_sample_stands_for_the_time_nearest_to_it_and_no_more_than_a_period(tmp_path: Path) -> None:
    made = recording()
    for time_ns in (1_000_000, 2_000_000, 3_000_000, 7_000_000):
        made.sample(time_ns, TRAIN, pid=PID)
    write_export(tmp_path / "run.sqlite", made)
    step = "/home/eve/train.py(0): step"
    assert frames(tmp_path / "run.sqlite") == [
        *((step, 0, 1_500_000), (step, 1_500_000, 2_500_000), (step, 2_500_000, 4_000_000)),
        (step, 6_000_000, 8_000_000),
    ]


def test_of_each_stack_python_and_native_code_give_their_innermost_known_frame(tmp_path: Path) -> None:
    made = recording()
    made.sample(1_000_000, COPY, pid=PID)
    write_export(tmp_path / "run.sqlite", made)
    assert [name for name, *_ in frames(tmp_path / "run.sqlite")] == [
        "/home/eve/train.py(0): step",
        "/opt/lib/libtorch_cpu.so: void at::native::copy_kernel<float>(at::Tensor)",
    ]


def test_a_stack_of_a_call_lasts_as_long_as_the_call(tmp_path: Path) -> None:
    path, made = tmp_path / "run.sqlite", recording()
    made.call("cudaStreamSynchronize_v3020", 1_000_000, 4_000_000, pid=PID)
    write_export(path, made)
    changed(
        path,
        "CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER)",
        "INSERT INTO StringIds VALUES (90001, 'wait_for_batch'), (90002, '/srv/megatron/core/x.py')",
        "INSERT INTO CUDA_CALLCHAINS VALUES (5, 90001, 90002, 0)",
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = 5 WHERE start = 1000000",
    )
    assert frames(path) == [("/srv/megatron/core/x.py(0): wait_for_batch", 1_000_000, 4_000_000)]
