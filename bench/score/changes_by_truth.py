"""python -m bench.score.changes_by_truth: how often a change's true saving lies in the range shown for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from bench.score.changes import FULL, changes_of_run, length_ns
from bench.simulate.draws import between, uniform
from bench.simulate.engine import execute
from bench.simulate.host_program import (
    MAIN,
    Allocate,
    Busy,
    Engine,
    Launch,
    Operation,
    Part,
    Program,
    Push,
)
from bench.simulate.knobs import Knobs, draw_knobs
from bench.simulate.run import run
from bench.simulate.step import program_of
from traces.replay.changes.change import ChangesTogether
from traces.replay.changes.dispatcher import LEAST, MOST

NEAR: Final = 0.01
"""A range is right where the truth lies at most so far outside, as a part of the window."""


SHORT: Final[Mapping[str, object]] = {"step_count": 3, "layer_count": 3}


@dataclass(frozen=True)
class Trial:
    """A change as a counterfactual: the knobs of a run that lacks it, and what it makes of knobs or program.

    `kind`: the change it tries; both knobs may hang on the seed.
    """

    kind: str
    lacks: Callable[[int], Mapping[str, object]]
    knobs: Callable[[Knobs], Mapping[str, object]] = lambda knobs: {}
    program: Callable[[Program], Program] | None = None


@dataclass(frozen=True)
class Held:
    """A change of one run: the range told and the true saving, as parts of the window."""

    kind: str
    seed: int
    low: float | None
    high: float
    true: float

    @property
    def inside(self) -> bool:
        """Whether the truth lies in the range, give or take a point."""
        above_low = self.low is None or self.low - NEAR <= self.true
        return above_low and self.true <= self.high + NEAR


_NO_GRAPHS: Final[Mapping[str, object]] = {
    "graph_attention": False,
    "graph_router": False,
    "graph_preprocess": False,
}
_GRAPHS: Final[Mapping[str, object]] = dict.fromkeys(_NO_GRAPHS, True)
_WHOLE: Final[Mapping[str, object]] = {"tensor_parallel_us": 0.0, "context_parallel_us": 0.0}
_RECOMPUTE: Final = ("norm_act", "core_attn", "moe", "full")


def _share(seed: int, name: str) -> float:
    return uniform(f"{seed}/trial/{name}")


def _one_of(seed: int, name: str, *values: object) -> object:
    return values[int(len(values) * _share(seed, name))]


def _collecting(seed: int) -> Mapping[str, object]:
    return {
        "gc_pause_ms": between(_share(seed, "pause"), 5, 120, by_factors=True),
        "gc_per_layer_frac": between(_share(seed, "often"), 0.02, 0.2),
    }


def _slow(seed: int) -> Mapping[str, object]:
    return {"dispatcher": "alltoall", "dispatch_us": between(_share(seed, "dispatch"), 60, 800)}


def _experts(seed: int) -> Mapping[str, object]:
    """As many tiles in one grouped GEMM as in one GEMM each."""
    count = round(between(_share(seed, "experts"), 2, 8))
    each = round(between(_share(seed, "tiles"), 8, 500, by_factors=True))
    return {"local_expert_count": count, "expert_tile_count": count * each}


def _faster(knobs: Knobs) -> Mapping[str, object]:
    factor = between(_share(knobs.seed, "factor"), MOST.value, LEAST.value)
    return {"dispatch_us": knobs.dispatch_us * factor}


def _at_edges(program: Program) -> Program:
    """Each step that collects does so once, as it begins."""
    operations: list[Operation] = []
    step: list[Operation] = []
    for one in program.threads[MAIN]:
        if isinstance(one, Push) and one.kind == "step":
            operations += _edge(step)
            step = []
        step.append(one)
    return Program(program.machine, {**program.threads, MAIN: operations + _edge(step)})


def _edge(step: list[Operation]) -> list[Operation]:
    pauses = [one for one in step if isinstance(one, Busy) and one.doing == "gc"]
    return [*pauses[:1], *(one for one in step if one not in pauses)]


def _without_retries(program: Program) -> Program:
    return _each_thread(
        program,
        lambda all_: [one for one in all_ if not (isinstance(one, Allocate) and one.part & Part.RETRY)],
    )


_FAMILIES: Final = (
    ("topk", "aux_loss"),
    ("multihot", "row_id_map", "permute", "unpermute", "sort_chunks", "hybridep_permute", "hybridep_unperm"),
    ("norm_", "activation", "quantize"),
)
_QUANTISED: Final = 2
"""The last of them: a norm or an activation, and the quantisations that follow it."""


def _family(one: Operation) -> int | None:
    if not isinstance(one, Launch) or len(one.works) != 1 or one.works[0].engine is not Engine.SMS:
        return None
    kernel = one.works[0].kernel
    return next((place for place, starts in enumerate(_FAMILIES) if kernel.startswith(starts)), None)


def _fused(program: Program) -> Program:
    """Neighbours of a family are one launch; what they do takes its time still."""
    return _each_thread(program, _fused_operations)


def _fused_operations(operations: Sequence[Operation]) -> list[Operation]:
    made: list[Operation] = []
    family: int | None = None
    for one in operations:
        mine = _family(one)
        goes_on = mine == family and (mine != _QUANTISED or _quantises(one))
        if mine is not None and goes_on and isinstance(one, Launch):
            if isinstance(made[-1], Busy):
                made.pop()
            first = made[-1]
            assert isinstance(first, Launch)
            made[-1] = first._replace(works=first.works + one.works)
        else:
            made.append(one)
            if _quantises(one):
                mine = None  # nothing is fused to a quantisation that stands alone
        if not isinstance(one, Busy):
            family = mine
    return made


def _quantises(one: Operation) -> bool:
    return isinstance(one, Launch) and one.works[0].kernel.startswith("quantize")


def _each_thread(program: Program, edit: Callable[[Sequence[Operation]], list[Operation]]) -> Program:
    return Program(program.machine, {name: edit(all_) for name, all_ in program.threads.items()})


TRIALS: Final[Mapping[str, Trial]] = {
    "graph_attn": Trial(
        "graph_attn", lambda seed: {**_NO_GRAPHS, **_WHOLE}, lambda knobs: {"graph_attention": True}
    ),
    "graph_moe_router": Trial(
        "graph_moe_router", lambda seed: _NO_GRAPHS, lambda knobs: {"graph_router": True}
    ),
    "graph_moe_preprocess": Trial(
        "graph_moe_preprocess", lambda seed: _NO_GRAPHS, lambda knobs: {"graph_preprocess": True}
    ),
    "graph_scopes": Trial("graph_scopes", lambda seed: {**_NO_GRAPHS, **_WHOLE}, lambda knobs: _GRAPHS),
    "fused_kernels": Trial("fused_kernels", lambda seed: {}, program=_fused),
    "collection_at_edges": Trial("collection_at_edges", _collecting, program=_at_edges),
    "no_collection": Trial("collection_at_edges", _collecting, lambda knobs: {"gc_pause_ms": 0.0}),
    "token_counts_stay": Trial(
        "token_counts_stay", lambda seed: {"token_sync": True}, lambda knobs: {"token_sync": False}
    ),
    "expert_overlap": Trial(
        "expert_overlap",
        lambda seed: {
            "ep_overlap": False,
            "microbatch_count": _one_of(seed, "microbatches", 2, 3, 4),
            "recompute": _one_of(seed, "recompute", "none", "none", "norm_act", "core_attn"),
        },
        lambda knobs: {"ep_overlap": True},
    ),
    "faster_dispatcher": Trial("faster_dispatcher", _slow, _faster),
    "recompute_dropped": Trial(
        "recompute_dropped",
        lambda seed: {"recompute": _one_of(seed, "recompute", *_RECOMPUTE)},
        lambda knobs: {"recompute": "none"},
    ),
    "recompute_narrowed": Trial(
        "recompute_narrowed", lambda seed: {"recompute": "full"}, lambda knobs: {"recompute": "norm_act"}
    ),
    "no_retries": Trial(
        "no_retries",
        lambda seed: {"retries_per_step": between(_share(seed, "retries"), 0.5, 8)},
        program=_without_retries,
    ),
    "grouped_experts": Trial(
        "grouped_experts",
        lambda seed: {
            "grouped_gemm": False,
            **_experts(seed),
            "dispatcher": _one_of(seed, "dispatcher", "alltoall", "deepep", "hybridep"),
        },
        lambda knobs: {"grouped_gemm": True},
    ),
}
"""What the simulator can change, by a name."""


def tried(name: str, seed: int, **also: object) -> Held | None:
    """A change tried on drawn knobs, and on those fixed besides what it needs.

    None where it was not found there, or what it acts on costs little.
    """
    trial = TRIALS[name]
    knobs = draw_knobs(seed, **{**also, **trial.lacks(seed)})
    before = run(knobs)
    found = changes_of_run(before, FULL)
    change = found.changes.get(trial.kind)
    if change is None:
        return None
    program = program_of(replace(knobs, **trial.knobs(knobs)))  # type: ignore[arg-type]
    executed = execute(trial.program(program) if trial.program else program)
    whole = length_ns(before.executed)
    saved = whole - length_ns(executed)
    low = None if change.low_ns is None else change.low_ns / whole
    return Held(name, seed, low, change.high_ns / whole, saved / whole)


def tried_together(names: Sequence[str], seed: int, **also: object) -> Held | None:
    """Several changes of one run, told by one replay and made at once; None where one was not found there."""
    all_ = [TRIALS[name] for name in names]
    lacking = {key: value for trial in all_ for key, value in trial.lacks(seed).items()}
    knobs = draw_knobs(seed, **{**also, **lacking})
    before = run(knobs)
    found = changes_of_run(before, FULL)
    kinds = {trial.kind for trial in all_}
    together = found.costs.together
    if not kinds <= {*found.changes} or not isinstance(together, ChangesTogether):
        return None
    made = {key: value for trial in all_ for key, value in trial.knobs(knobs).items()}
    program = program_of(replace(knobs, **made))  # type: ignore[arg-type]
    for trial in all_:
        program = trial.program(program) if trial.program else program
    whole, joint = length_ns(before.executed), together.joint(kinds)
    saved = whole - length_ns(execute(program))
    return Held(" and ".join(names), seed, joint.low_ns / whole, joint.high_ns / whole, saved / whole)


def trials(name: str, count: int, first_seed: int, **also: object) -> Iterator[Held]:
    """`count` drawn runs in which a change applies."""
    seed = first_seed
    while count:
        held = tried(name, seed, **also)
        seed += 1
        if held is not None:
            count -= 1
            yield held


def trials_together(names: Sequence[str], seeds: range, **also: object) -> Iterator[Held]:
    """Of some drawn runs those in which all these changes apply."""
    for seed in seeds:
        if (held := tried_together(names, seed, **also)) is not None:
            yield held


def main() -> None:
    """Print, per change, how many ranges held the truth and how wide they are."""
    parser = argparse.ArgumentParser(prog="python -m bench.score.changes_by_truth", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[*TRIALS])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=300)
    parser.add_argument("--short", action="store_true", help="three steps of three layers each")
    parser.add_argument("--wrong", action="store_true", help="print the runs whose range is wrong")
    options = parser.parse_args()
    for kind in options.kinds:
        held = [*trials(kind, options.runs, options.seed, **(SHORT if options.short else {}))]
        print(_said(kind, held), flush=True)
        for one in held:
            if options.wrong and not one.inside:
                print(
                    f"    seed {one.seed}: {one.low} to {one.high:.4f}, truly {one.true:.4f}", file=sys.stderr
                )


def _said(kind: str, held: list[Held]) -> str:
    told = [one for one in held if one.low is not None]
    inside = sum(one.inside for one in held)
    width = median(one.high - (one.low or 0.0) for one in held)
    true = median(one.true for one in held)
    return (
        f"{kind}: {inside} of {len(held)} inside, {len(told)} with a lower end; "
        f"median width {width:.1%}, median truth {true:.1%}"
    )


if __name__ == "__main__":
    main()
