"""What went wrong in a run: what rules and the rows of `failures.toml` say of the lines of its
log.
"""

from collections.abc import Mapping
from functools import cache
from math import inf
from typing import Final

from msgspec import field
from msgspec.structs import force_setattr, replace

from heuristics.config.view import Config
from heuristics.result.configured import FailureState
from heuristics.rules.condition import RUNS, Condition
from heuristics.rules.rules import Rule, Rules, known_lines, rules
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import QUARTER
from traces.patterns import compiled
from traces.sections.section import copied
from traces.settings.settings import Values
from traces.texts import Texts
from traces.toml_tables import TableRow, read_keyed
from traces.training_log.log import LoggedMemory, Message, Stage, TrainingLog
from traces.training_log.memory import inactive_memory, most_unallocated, pieces_suffice

Seen = tuple[int | None]
"""A line of a log, or None where no line stands for it."""


def _stopped(log: TrainingLog, config: Config) -> Seen | None:
    """The log ends without a word of its end."""
    if not log.stopped:
        return None
    return (log.iterations[-1].line if log.iterations else None,)


def _fragmented(log: TrainingLog, config: Config) -> Seen | None:
    """What was asked for would have fitted into what was reserved and not allocated."""
    for error in log.out_of_memory:
        if error.is_fragmented:
            return (error.line,)
    if in_pieces(log):
        return (log.out_of_memory[0].line,)
    most = None if log.out_of_memory else most_unallocated(log)
    if most and most.unallocated_frac >= QUARTER.value:
        return (most.line,)
    return None


def in_pieces(log: TrainingLog) -> LoggedMemory | None:
    """The report whose unused fragments would have held what an error asked for, or are much of the
    GPU's.

    Errors that say what was allocated tell it better.
    """
    silent = [error for error in log.out_of_memory if error.allocated_bytes is None]
    report = inactive_memory(log) if silent else None
    if not report or not report.inactive_bytes:
        return None
    asked_bytes: float = max(error.requested_bytes or 0 for error in silent)
    if not asked_bytes:
        reserved = report.reserved_bytes or report.peak_reserved_bytes or 0
        asked_bytes = QUARTER.value * reserved
    if 0 < asked_bytes <= report.inactive_bytes:
        return report
    return None


def _out(log: TrainingLog, config: Config) -> Seen | None:
    """Memory ran out, in whatever stage."""
    for error in log.out_of_memory:
        return (error.line,)
    return None


def _too_much(log: TrainingLog, config: Config) -> Seen | None:
    """More was asked for than all that the allocator could have had."""
    if pieces_suffice(log) is False:
        return (log.out_of_memory[0].line,)
    return None


def _graph_memory(log: TrainingLog, config: Config) -> Seen | None:
    """Out of memory in a capture, with graphs' private pools, or after a capture that went
    through.
    """
    captured = log.first("graph-captured", "graph-built")
    for error in log.out_of_memory:
        after = captured is not None and captured.line < error.line
        if error.stage == "graph_capture" or error.graph_pool_bytes or after:
            return (error.line,)
    return None


def _graph_access(log: TrainingLog, config: Config) -> Seen | None:
    """An illegal access with graphs, where the configuration does not rule the known cause out."""
    message = log.first("illegal-access")
    graphs = config.graph_impl not in (None, "none") or log.first(
        "graph-captured", "graph-capture-begins"
    )
    segments = config.env("PYTORCH_CUDA_ALLOC_CONF")
    ruled_out = segments and "expandable_segments:True" not in segments
    if not message or not graphs or ruled_out or config.env_is("NCCL_GRAPH_REGISTER", "0"):
        return None
    return (message.line,)


SIGNS: Final = {
    "out of memory": _out,
    "stopped": _stopped,
    "fragmented": _fragmented,
    "too much": _too_much,
    "graph memory": _graph_memory,
    "graph access": _graph_access,
}
"""By the name that a row gives."""


class Failure(TableRow, kw_only=True):
    """Something a log shows, explained.

    `text`: the likely cause, of a row with facts in braces. `confirm`: how to be sure. `cure`: what
    to do, in words; `set`: settings that do it, by the knob's id, where their values do not depend
    on the run. `fix`: the catalogue's id, or `CFG-n` (the configuration), `ENV-n` (upgrade or
    environment), `CAP-n` (record again). `proven`: the log's own figures show it. `rule`: the one
    that is broken. `line`: of the log, None where only the configuration tells. No text holds
    anything of the log but our own words, and its figures.
    """

    id: str
    state: FailureState
    text: str
    confirm: str
    cure: str
    fix: str
    source: str = ""
    set: Values = field(default_factory=dict)
    rule: str = ""
    line: int | None = None
    proven: bool = False


class FailureRow(Failure):
    """A row of `failures.toml`, which says what its fields are."""

    lines: Texts = ()
    signs: Texts = ()
    stages: tuple[Stage, ...] = ()
    when: Condition = RUNS.condition("True")
    unless: Texts = ()

    def __post_init__(self) -> None:
        if not self.source:
            force_setattr(self, "source", known_lines().by_id[self.lines[0]].source)

    def seen(self, run: Run, log: TrainingLog, config: Config) -> Seen | None:
        """Where the run's log shows it, with such a setting."""
        if not self.when.holds(run) or (self.rule and not rules()[self.rule].broken(config)):
            return None
        if message := log.first(*self.lines):
            return (message.line,)
        for error in log.out_of_memory:
            if error.stage in self.stages:
                return (error.line,)
        for name in self.signs:
            if line := SIGNS[name](log, config):
                return line
        return None


@cache
def failures() -> Mapping[str, FailureRow]:
    """Every row by its id. Raises `WrongRow`."""
    return read_keyed("heuristics.rules", "failures.toml", FailureRow, RUNS.readers)


_STATES: Final = {
    "error": "rejected",
    "warning": "ineffective",
    "ignored": "skipped",
}


def explain_failures(run: Run) -> tuple[Failure, ...]:
    """Every failure that the run's log shows, or its configuration; those with a line first.

    Where rules share a line, the one that the configuration breaks caused it.
    """
    if not run.log:
        return ()
    log, config = run.log, run.checked
    of_rules = dict[str, Failure]()
    for message in log.messages:
        if message.id in rules_by_line():
            rule = _cause(rules_by_line()[message.id], config)
            of_rules.setdefault(rule.id, _caused(rule, config, message))
    seen = {}
    for row in failures().values():
        if (at := row.seen(run, log, config)) is not None:
            text, cure = RUNS.filled(row.text, run), RUNS.filled(row.cure, run)
            seen[row.id] = replace(row, line=at[0], text=text, cure=cure)
    of_table = (row for row in seen.values() if seen.keys().isdisjoint(row.unless))
    return tuple(sorted((*of_rules.values(), *of_table), key=lambda failure: failure.line or inf))


@cache
def rules_by_line() -> Mapping[str, Rules]:
    """The rules that a known line may come from."""
    by_line = dict[str, Rules]()
    for rule in rules().values():
        for line in rule.all_lines:
            by_line[line] = (*by_line.get(line, ()), rule)
    return by_line


def _cause(candidates: Rules, config: Config) -> Rule:
    return min(candidates, key=lambda rule: (True, None, False).index(rule.verdict(config)))


def _caused(rule: Rule, config: Config, message: Message) -> Failure:
    return copied(
        Failure,
        rule,
        state=_STATES[rule.level],
        confirm=", ".join(rule.knobs),
        cure=say("findings.not-handed-on")
        if rule.broken(config) is False
        else rule.cure_of(config),
        source=known_lines().by_id[message.id].source,
        rule=rule.id,
        line=message.line,
    )


Corrected = tuple[Rule | FailureRow, ...]
"""What one correction mends."""
CORRECTION: Final = compiled(r"(?:CFG|ENV|CAP)-[1-9][0-9]?")
"""What is corrected in the configuration, the environment or the recording, and is no fix."""


@cache
def corrections() -> Mapping[str, Corrected]:
    """What rules and failures ask for beside fixes, by id in order, with all that it is for."""
    by_fix = dict[str, Corrected]()
    every: Corrected = (*rules().values(), *failures().values())
    for row in every:
        if CORRECTION.fullmatch(row.fix):
            by_fix[row.fix] = (*by_fix.get(row.fix, ()), row)
    return dict(sorted(by_fix.items(), key=lambda entry: (entry[0][:3], int(entry[0][4:]))))
