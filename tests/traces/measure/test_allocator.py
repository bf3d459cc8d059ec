"""Which frees are the caching allocator's: those right before an allocation of the same operator."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.doubles.opinions import measured
from traces.missing import known

Export = Callable[..., Path]
KERNEL = "void gemm<float>(float*)"
FREE, ALLOCATE, LAUNCH = "cudaFree_v3020", "cudaMalloc_v3020", "launch"


def recorded(operators: Sequence[tuple[str, tuple[str, ...]]]) -> Recording:
    """Four steps of operators in turn, each a range with its calls, 10 us each."""
    recording, at = Recording(), 10_000
    recording.gpu()
    for step in range(4):
        begin = at
        for name, calls in operators:
            first = at
            for call in calls:
                if call in (LAUNCH, CONVOLVE):
                    recording.kernel(
                        KERNEL if call == LAUNCH else "igemm_fwd_gtcx3_nhwc_bf16_bx0",
                        at + 5_000,
                        at + 9_000,
                        grid=(132, 1, 1),
                        launch_ns=at,
                        launch_end_ns=at + 2_000,
                    )
                else:
                    recording.call(call, at, at + 8_000)
                at += 10_000
            recording.range(name, first, at - 1_000)
        recording.range(f"iteration {step}", begin, at)
        at += 10_000
    return recording


CONVOLVE = "convolve"
CONV, EMPTY, BACK = "aten::convolution", "aten::empty", "autograd::engine::evaluate_function: ReluBackward0"
CACHE = [(CONV, (LAUNCH,)), (EMPTY, (FREE, FREE, ALLOCATE)), (CONV, (LAUNCH,))]
WORKSPACE = [(CONV, (ALLOCATE, LAUNCH, FREE)), (CONV, (ALLOCATE, LAUNCH, FREE))]
TAKEN_ANEW = [
    (CONV, (CONVOLVE,)),
    (CONV, (FREE, ALLOCATE, CONVOLVE)),
    (CONV, (FREE, ALLOCATE, FREE, ALLOCATE, CONVOLVE)),
]
ASKED_FIRST = [(CONV, (CONVOLVE,)), (CONV, (ALLOCATE, FREE, ALLOCATE, CONVOLVE))]
NO_CACHE = [(EMPTY, (ALLOCATE,)), (CONV, (LAUNCH,)), (BACK, (FREE,)), (EMPTY, (ALLOCATE,)), (CONV, (LAUNCH,))]


@pytest.mark.parametrize(
    ("operators", "foreign_frac", "retry_frac"),
    [
        (CACHE, 0.0, 1.0),
        (WORKSPACE, 1.0, 0.0),
        (TAKEN_ANEW, 1.0, 0.0),
        (ASKED_FIRST, 0.0, 1.0),
        (NO_CACHE, 1.0, 0.0),
        ([(CONV, (LAUNCH,))], 0.0, 0.0),
    ],
    ids=["full cache", "workspace", "taken anew", "asked first", "no cache", "nothing is freed"],
)
def test_only_frees_that_make_room_for_an_allocation_are_retries_of_the_cache(
    export: Export,
    operators: list[tuple[str, tuple[str, ...]]],
    foreign_frac: float,
    retry_frac: float,
) -> None:
    memory = measured(export(recorded(operators))).memory
    assert memory.foreign_frees_frac == foreign_frac
    assert known(memory.allocator_retry_frac) == retry_frac
