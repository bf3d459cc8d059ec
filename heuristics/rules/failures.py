"""What went wrong in a run: what rules and the rows of `failures.toml` say of the lines of its log."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from heuristics.config.view import Config
from heuristics.result.configured import FailureState
from heuristics.rules.condition import READERS, Condition
from heuristics.rules.rules import Rule, known_lines, rules, verdict
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value
from traces.toml_tables import read_table
from traces.training_log.log import Stage, TrainingLog
from traces.training_log.memory import most_unallocated, pieces_suffice

Sign = Callable[[TrainingLog, Config], tuple[int | None] | None]
"""Where it is: a line, or None where no line stands for it. None as a whole: it is not there."""

FRAGMENTED: Final = Limit(
    0.2,
    "fraction of the reserved memory",
    "ours: a peak that has passed leaves some reserved and unused; a fifth of a GPU is worth an experiment",
)


def _stopped(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """The log ends without a word of its end."""
    if not log.stopped:
        return None
    return (log.iterations[-1].line if log.iterations else None,)


def _fragmented(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """What was asked for would have fitted into what was reserved and not allocated."""
    for error in log.out_of_memory:
        if None in (error.reserved_bytes, error.allocated_bytes, error.requested_bytes):
            continue
        unused = (error.reserved_bytes or 0) - (error.allocated_bytes or 0)
        if unused >= (error.requested_bytes or 0):
            return (error.line,)
    most = None if log.out_of_memory else most_unallocated(log)
    return (most.line,) if most and most.unallocated_frac >= FRAGMENTED.value else None


def _too_much(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """More was asked for than all that the allocator could have had."""
    return (log.out_of_memory[0].line,) if pieces_suffice(log) is False else None


def _graph_memory(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """Out of memory in a capture, with graphs' private pools, or after a capture that went through."""
    captured = log.first("graph-captured", "graph-built")
    for error in log.out_of_memory:
        after = captured is not None and captured.line < error.line
        if error.stage == "graph_capture" or error.graph_pool_bytes or after:
            return (error.line,)
    return None


def _graph_access(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """An illegal access with graphs, where the configuration does not rule the known cause out."""
    message = log.first("illegal-access")
    graphs = config.graph_impl not in (None, "none") or log.first("graph-captured", "graph-capture-begins")
    segments = config.env("PYTORCH_CUDA_ALLOC_CONF")
    ruled_out = segments and "expandable_segments:True" not in segments
    if message is None or not graphs or ruled_out or config.env_is("NCCL_GRAPH_REGISTER", "0"):
        return None
    return (message.line,)


SIGNS: Final[Mapping[str, Sign]] = {
    "stopped": _stopped,
    "fragmented": _fragmented,
    "too much": _too_much,
    "graph memory": _graph_memory,
    "graph access": _graph_access,
}
"""By the name that a row gives."""


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `failures.toml`, which says what its fields are."""

    id: str
    state: FailureState
    text: str
    confirm: str
    cure: str
    fix: str
    source: str = ""
    set: Mapping[str, Value] = {}
    lines: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    when: Condition | None = None
    unless: tuple[str, ...] = ()
    rule: str = ""

    def __post_init__(self) -> None:
        if not self.source:
            force_setattr(self, "source", known_lines().by_id[self.lines[0]].source)

    def seen(self, log: TrainingLog, config: Config) -> tuple[int | None] | None:
        """The line where a log shows it; None as a whole where it does not, or not with such a setting."""
        if self.when and not self.when.holds(config):
            return None
        if self.rule and not rules()[self.rule].broken(config):
            return None
        message = log.first(*self.lines)
        if message is not None:
            return (message.line,)
        error = next((one for one in log.out_of_memory if one.stage in self.stages), None)
        if error is not None:
            return (error.line,)
        return next((found for name in self.signs if (found := SIGNS[name](log, config))), None)


@cache
def failures() -> Mapping[str, Row]:
    """Every row by its id. Raises `WrongRow`."""
    read = read_table("heuristics.rules", "failures.toml", dict[str, tuple[Row, ...]], READERS)
    return {row.id: row for row in read["failure"]}


@dataclass(frozen=True, slots=True)
class Failure:
    """Something a log shows, explained.

    `text`: the likely cause. `confirm`: how to be sure. `fix`: what to do, in words; `knobs`: settings that
    do it, by the knob's id, where their values do not depend on the run. `fix_id`: the catalogue's, or
    `CFG-n` (mend the configuration), `ENV-n` (upgrade or environment), `CAP-n` (record again). `line`: of the
    log, None where only the configuration tells. No text holds anything of the log but our own words.
    """

    id: str
    text: str
    confirm: str
    fix: str
    fix_id: str
    line: int | None
    source: str
    state: FailureState
    knobs: Mapping[str, Value] = field(default_factory=dict)
    rule: str = ""


_STATES: Final[Mapping[str, FailureState]] = {
    "error": "rejected",
    "warning": "ineffective",
    "ignored": "skipped",
}


def explain_failures(run: Run) -> tuple[Failure, ...]:
    """Every failure that the run's log shows, or its configuration; those with a line first.

    Where rules share a line, the one that the configuration breaks caused it.
    """
    if run.log is None:
        return ()
    found = [
        *_of_rules(run.log, run.validated),
        *_of_table(run.log, run.validated),
    ]
    return tuple(sorted(found, key=lambda one: (one.line is None, one.line or 0)))


@cache
def rules_by_line() -> Mapping[str, tuple[Rule, ...]]:
    """The rules that a known line may come from."""
    lines = dict.fromkeys(line for rule in rules().values() for line in rule.all_lines)
    return {line: tuple(rule for rule in rules().values() if line in rule.all_lines) for line in lines}


def _of_rules(log: TrainingLog, config: Config) -> list[Failure]:
    found: dict[str, Failure] = {}
    for message in log.messages:
        if message.id in rules_by_line():
            rule = _cause(rules_by_line()[message.id], config)
            found.setdefault(rule.id, _caused(rule, config, message.id, message.line))
    return list(found.values())


def _cause(several: tuple[Rule, ...], config: Config) -> Rule:
    verdicts = {rule.id: verdict(rule, config) for rule in several}
    return min(several, key=lambda rule: (True, None, False).index(verdicts[rule.id]))


def _caused(rule: Rule, config: Config, line_id: str, line: int) -> Failure:
    return Failure(
        id=rule.id,
        text=rule.text,
        confirm=", ".join(rule.knobs),
        fix=rule.cure_of(config),
        fix_id=rule.fix,
        line=line,
        source=known_lines().by_id[line_id].source,
        state=_STATES[rule.level],
        knobs=rule.set,
        rule=rule.id,
    )


def _of_table(log: TrainingLog, config: Config) -> list[Failure]:
    found = {row.id: at for row in failures().values() if (at := row.seen(log, config)) is not None}
    return [
        Failure(
            id=row.id,
            text=row.text,
            confirm=row.confirm,
            fix=row.cure,
            fix_id=row.fix,
            line=found[row.id][0],
            source=row.source,
            state=row.state,
            knobs=row.set,
            rule=row.rule,
        )
        for row in failures().values()
        if row.id in found and not {*row.unless} & {*found}
    ]


CORRECTION: Final = re.compile(r"(?:CFG|ENV|CAP)-[1-9][0-9]?")
"""What is corrected in the configuration, the environment or the recording, and is no fix."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a correction is for: a rule or a failure, and its cure."""

    id: str
    text: str
    cure: str


@cache
def corrections() -> Mapping[str, tuple[Corrected, ...]]:
    """What rules and failures ask for beside fixes, by id in order, with all that it is for."""
    found = [(rule.fix, Corrected(rule.id, rule.text, rule.cure)) for rule in rules().values()]
    found += [(row.fix, Corrected(row.id, row.text, row.cure)) for row in failures().values()]
    ids = sorted({id for id, _ in found if CORRECTION.fullmatch(id)}, key=lambda id: (id[:3], int(id[4:])))
    return {id: tuple(one for of, one in found if of == id) for id in ids}
