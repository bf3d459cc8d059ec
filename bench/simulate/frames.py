"""Functions on the stacks of a run's host threads: which code launches what, with what stands between.

A program gets them without any other change: they take no time. Whoever launches a piece of GPU work does so
in the function of its place, within the plumbing that a framework has there, within the step of the training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bench.simulate.happened import Executed, Span
from bench.simulate.host_program import (
    AUTOGRAD,
    MAIN,
    Allocate,
    Await,
    Initialise,
    Launch,
    Operation,
    Place,
    Pop,
    Program,
    Push,
    Signal,
    Spin,
    Synchronise,
)
from bench.simulate.recorded import START_NS, Process
from bench.simulate.recording import Recording
from bench.simulate.run import Run

KIND: Final = "function"
"""The kind of a range that stands for a function."""
OUTER: Final = "/home/somebody/megatron-lm/megatron/training/training.py(1501): train_step"
_PLUMBING: Final = (
    "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py(1773): _wrapped_call_impl",
    "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py(1784): _call_impl",
)
_INNER: Final = "<built-in method of a tensor>"
_CORE: Final = "/home/somebody/megatron-lm/megatron/core"
_FUNCTIONS: Final = (
    # the beginning of an operation's name -> its function, the first that fits
    ("token_counts", f"{_CORE}/transformer/moe/token_dispatcher.py(620): _maybe_dtoh_and_synchronize"),
    ("dispatch", f"{_CORE}/transformer/moe/token_dispatcher.py(540): dispatch_preprocess"),
    ("combine", f"{_CORE}/transformer/moe/token_dispatcher.py(700): combine_postprocess"),
    ("router", f"{_CORE}/transformer/moe/router.py(330): routing"),
    ("topk", f"{_CORE}/transformer/moe/router.py(330): routing"),
    ("aux_loss", f"{_CORE}/transformer/moe/router.py(410): _apply_aux_loss"),
    ("fc", f"{_CORE}/transformer/moe/experts.py(240): forward"),
    ("activation", f"{_CORE}/fusions/fused_bias_swiglu.py(20): swiglu"),
    ("attention", f"{_CORE}/transformer/attention.py(300): _checkpointed_attention_forward"),
    ("qkv", f"{_CORE}/transformer/attention.py(520): get_query_key_value_tensors"),
    ("rope", f"{_CORE}/models/common/embeddings/rotary_pos_embedding.py(90): apply_rotary_pos_emb"),
    ("norm", f"{_CORE}/transformer/transformer_layer.py(430): _forward_attention"),
    ("gradients", f"{_CORE}/distributed/param_and_grad_buffer.py(310): start_grad_sync"),
    ("parameters", f"{_CORE}/distributed/param_and_grad_buffer.py(220): start_param_sync"),
    ("adam", f"{_CORE}/optimizer/optimizer.py(500): step_with_ready_grads"),
    ("l2norm", f"{_CORE}/optimizer/clip_grads.py(50): get_grad_norm_fp32"),
    ("batch", "/home/somebody/pretrain_own.py(40): get_batch"),
    ("loss", "/home/somebody/pretrain_own.py(90): loss_func"),
    ("", f"{_CORE}/transformer/transformer_block.py(480): forward"),
)
NAMES: Final = {
    text: text.replace(".py", "").partition("megatron-lm/")[2].replace("/", ".").partition("(")[0]
    + "."
    + text.rpartition(" ")[2]
    for _, text in (*_FUNCTIONS, ("", OUTER))
    if "megatron-lm/" in text
} | {
    "/home/somebody/pretrain_own.py(40): get_batch": "pretrain_own.get_batch",
    "/home/somebody/pretrain_own.py(90): loss_func": "pretrain_own.loss_func",
}
"""What may be told of each function: of published code its package, of somebody's own its file alone."""


def function_of(place: Place) -> str:
    """The function that launches what belongs here."""
    return next(text for begin, text in _FUNCTIONS if place.operation.startswith(begin))


def with_functions(program: Program) -> Program:
    """The same program with a stack for all that its threads do."""
    threads = {name: [*_framed(operations)] for name, operations in program.threads.items()}
    return Program(program.machine, threads)


def _framed(operations: Sequence[Operation]) -> Iterator[Operation]:
    """What leads to a launch, or to a call that waits, is in the function of that work, or of the last."""
    before: list[Operation] = []
    last = OUTER
    yield Push(OUTER, KIND)
    for one in operations:
        if isinstance(one, Push | Pop | Signal | Await | Spin):
            yield from before
            yield one
            before = []
        elif isinstance(one, Launch | Synchronise | Allocate | Initialise):
            last = function_of(one.works[0].place) if isinstance(one, Launch) else last
            for text in (*_PLUMBING, last, _INNER):
                yield Push(text, KIND, one.part)
            yield from (*before, one)
            yield from (Pop(one.part) for _ in range(len(_PLUMBING) + 2))
            before = []
        else:
            before.append(one)
    yield from (*before, Pop())


def functions(executed: Executed) -> list[Span]:
    """Every function that lasted, in the order of its begin, outer ones first."""
    found = [span for span in executed.spans[::-1] if span.kind == KIND and span.end_ns > span.start_ns]
    return sorted(found, key=lambda one: (one.start_ns, -one.end_ns))  # of equal ones the inner ended first


def stacks(executed: Executed, times_ns: Iterable[int], thread: str) -> list[tuple[str, ...]]:
    """The stack of a thread at rising instants, the outermost function first."""
    mine = [one for one in functions(executed) if one.thread == thread]
    found, open_, place = [], list[Span](), 0
    for now in times_ns:
        while place < len(mine) and mine[place].start_ns <= now:
            open_.append(mine[place])
            place += 1
        open_ = [one for one in open_ if one.end_ns > now]
        found.append(tuple(one.text for one in open_))
    return found


def sample(recording: Recording, run: Run, every_ns: int, process: Process | None = None) -> None:
    """Add what nsys would have sampled of the stacks of the run's own threads."""
    of = process or Process()
    for thread in (MAIN, AUTOGRAD):
        times = range(every_ns // 2, run.executed.end_ns, every_ns)
        for at_ns, stack in zip(times, stacks(run.executed, times, thread), strict=True):
            frames = [_as_nsys(text) for text in reversed(stack)]
            recording.sample(START_NS + at_ns, frames, pid=of.pid, tid=of.tid(thread))


def _as_nsys(text: str) -> tuple[str, str]:
    """Symbol and module of a frame; built-in ones are the interpreter's."""
    if text == _INNER:
        return "_PyEval_EvalFrameDefault", "/usr/bin/python3.12"
    return text.rpartition(" ")[2], text.partition("(")[0]
