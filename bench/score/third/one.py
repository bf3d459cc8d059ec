"""One run of the third simulator: written, analysed as a user does, held beside its truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.third.handicaps import CAUSES, Hand, Kind
from bench.third.program import Do
from bench.third.recorded import Style, draw_style, write
from bench.third.run import Truth, draw_truth
from diagnoser.api import analyze
from traces.errors import MoeDiagError

NEAR_WAIT: Final = 0.05
NEAR_SAVED: Final = 0.03
NEAR_CLOCK_US: Final = 20.0
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Case:
    """A run to be scored."""

    kind: Kind
    seed: int


@dataclass(frozen=True, slots=True)
class Scored:
    """What was found beside what is true. None: not known, or nothing claimed; `why` is the reason.

    `hard`: windows are ragged, or a pipeline has no names. `clock_us`: how far the worst clock is off.
    """

    case: Case
    hard: bool = False
    cause: str | None = None
    whom: tuple[int, ...] = ()
    cause_right: bool = False
    right: bool = False
    saved: float | None = None
    true_saved: float = 0.0
    wait_ms: float | None = None
    true_wait_ms: float = 0.0
    aligned: bool = False
    clock_us: float | None = None
    why: str = ""
    made: str = ""
    error: str = ""
    impossible: bool = False

    @property
    def saved_right(self) -> bool:
        """Whether the answer gives the true saving, of the right cause."""
        return self.right and self.saved is not None and abs(self.saved - self.true_saved) <= NEAR_SAVED

    @property
    def wait_right(self) -> bool:
        """Whether all waiting is as it was."""
        return (
            self.wait_ms is not None
            and abs(self.wait_ms - self.true_wait_ms) <= NEAR_WAIT * self.true_wait_ms
        )

    @property
    def clock_wrong(self) -> bool:
        """Whether clocks are called aligned that are not."""
        return self.aligned and (self.clock_us or 0.0) > NEAR_CLOCK_US


def score(case: Case) -> Scored:
    """Simulate, record, analyse and compare; whatever goes wrong in the analysis is a result."""
    try:
        truth = draw_truth(case.seed, case.kind)
    except ValueError as error:
        return Scored(case, error=str(error), impossible=True)
    style = draw_style(truth.world, truth.done)
    layout = truth.world.layout
    made = (
        f"tp {layout.tensor} cp {layout.context} ep {layout.expert} dp {layout.data} pp {layout.pipeline}, "
        f"{layout.per_node} a node, {truth.world.dispatcher}, {style.ranges.value}"
        f"{', ragged' if style.ragged else ''}{', a file a node' if style.by_node else ''}"
    )
    hard = style.ragged or (layout.pipeline > 1 and not style.ranges.payloads and not style.ranges.nccl)
    with TemporaryDirectory() as folder:
        paths, mapped = write(truth.world, truth.done, style, Path(folder))
        try:
            document = analyze(paths, ranks=mapped, ask_megatron=False).to_dict()
        except MoeDiagError as error:
            return Scored(case, hard=hard, made=made, error=f"{type(error).__name__}: {error}")
    return compared(case, truth, style, document, hard=hard, made=made)


def compared(
    case: Case, truth: Truth, style: Style, document: Mapping[str, Any], *, hard: bool, made: str
) -> Scored:
    """A document beside the truth of its run."""
    run = document["run"]
    late, without = run["late"], run["without"]
    ranks = [one["rank"] for one in run["ranks"]]
    cause = late and late["cause"]
    whom = _whom(run, late, ranks) if late else ()
    hits = [place for place, hand in enumerate(truth.hands) if cause == CAUSES[hand.kind]]
    right = [place for place in hits if names(truth.hands[place], whom)]
    healthy = not truth.hands
    place = (right or hits or [0])[0]
    reasons = [one["reason"] for one in document["missing"] if one["path"] in ("run.late", "run.without")]
    true_saved = truth.saved_of_each[place] if len(truth.hands) > 1 else truth.saved_frac
    return Scored(
        case=case,
        hard=hard,
        cause=cause,
        whom=whom,
        cause_right=bool(hits) or (healthy and cause in (None, _NONE)),
        right=bool(right) or (healthy and cause in (None, _NONE)),
        saved=without and without["saved_frac"],
        true_saved=true_saved,
        wait_ms=run["wait_ns"] / 1e6 / max(run["steps"], 1),
        true_wait_ms=true_wait_ms(truth, style, run["steps"]),
        aligned=run["clocks"]["aligned"],
        clock_us=clocks_off_us(style, run),
        why="; ".join(reasons),
        made=made,
    )


def _whom(run: Mapping[str, Any], late: Mapping[str, Any], ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks that an answer names, or those of the stage that it names."""
    places = late["indices"] or (run["groups"][late["group"]]["ranks"] if late["group"] is not None else ())
    return tuple(sorted(ranks[place] for place in places))


def names(hand: Hand, whom: Sequence[int]) -> bool:
    """Whether these ranks are a right answer: all where all are hit, else some that may be named."""
    if not hand.accept:
        return True
    if hand.whole:
        return set(whom) == set(hand.accept)
    return bool(whom) and set(whom) <= set(hand.accept)


def true_wait_ms(truth: Truth, style: Style, steps: int) -> float:
    """Waiting in a mean step, of the collectives that all ranks recorded: of the last steps of whole ones."""
    seen = _seen_ms(truth, style)
    whole = (
        sorted(step for step in seen if step > 0 and _is_whole(truth, style, step))[-steps:] if steps else []
    )
    if not style.ragged and len(whole) == steps == truth.world.steps:
        return sum(seen.values()) / steps  # what lies before the first step counts to it
    return sum(seen[step] for step in whole) / len(whole) if whole else 0.0


def _seen_ms(truth: Truth, style: Style) -> dict[int, float]:
    """Waiting by step, where every participant was recorded."""
    waited: dict[int, float] = {}
    for one in truth.done.transfers:
        windows = [style.windows_us[rank] for rank in one.parts]
        parts = one.parts.values()
        if all(a <= part.called and part.end <= b for (a, b), part in zip(windows, parts, strict=True)):
            step = next(iter(parts)).step
            waited[step] = waited.get(step, 0.0) + sum(one.last - part.start for part in parts) / 1_000
    return waited


def _is_whole(truth: Truth, style: Style, step: int) -> bool:
    """Whether every rank recorded all of a step."""
    for (begin, end), each in zip(style.windows_us, truth.done.operations, strict=True):
        own = [one for one in each if one.step == step and one.do is Do.LAUNCH]
        if own[0].called < begin or max(one.end for one in own) > end:
            return False
    return True


def clocks_off_us(style: Style, run: Mapping[str, Any]) -> float | None:
    """How far the worst rank's fitted clock lies from that of a middle rank, somewhere in its window."""
    off: dict[int, list[float]] = {}
    ranks = [one["rank"] for one in run["ranks"]]
    for fit in run["clocks"]["by_rank"]:
        for place in fit["ranks"]:
            rank = ranks[place]
            for end in (0, 1):
                true_us = style.windows_us[rank][end]
                own_ns = style.clocks[rank].of(true_us)
                fitted = own_ns - fit["offset_ns"] - (own_ns - fit["base_ns"]) * fit["drift_ppm"] * 1e-6
                off.setdefault(end, []).append(fitted / 1_000 - true_us)
    if not off:
        return None
    return max(abs(one - median(each)) for each in off.values() for one in each)
