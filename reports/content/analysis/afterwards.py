"""The last line of a page: what to type next."""

from typing import Final

from msgspec import UNSET

from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from reports.content.analysis.times import stretch_name
from reports.content.blocks import Command, words
from traces.missing import known
from traces.recording.line import schedule
from traces.recording.options import Question, TrainedWith
from traces.recording.recorder import TORCH, recorded_by
from traces.spelling import counted, file_word

_FLAGS: Final = {"megatron_bridge": TrainedWith.BRIDGE, "pytorch": TrainedWith.PYTORCH}
"""Who marks the steps, if not Megatron-LM: by the configuration, or by names of the recording."""


def next_command(result: Result) -> Command:
    trace = result.traces[0]
    path = file_word(trace.name if trace.path is UNSET else trace.path)
    blind = all(wall.outcome == "unmeasurable" for wall in result.walls)
    if result.verdict.startup_ns or blind:
        return Command(words("Record again:"), _how_to_record(result, Question.WALLS))
    if result.fixes or result.levers:
        return _did_it_help(result, path)
    return Command(words("What this recording is enough for:"), f"moe-diag doctor {path}")


def _did_it_help(result: Result, path: str) -> Command:
    """The comparison with a later recording, or how to record steps enough for it."""
    found = enough_steps(result)
    compare = f"moe-diag compare {'BEFORE/ AFTER/' if len(result.traces) > 1 else f'{path} AFTER'}"
    if found.decides:
        log = known(result.log)
        logs = f" --base-log {file_word(log.name)} --new-log LOG" if log and found.by_log else ""
        return Command(words("Did it help?"), f"{compare}{logs}")
    steps = counted(found.count, stretch_name(result.ranks[0].steps))
    if found.record is None:
        said = f"{steps} vary too much to compare. With the logs of both runs:"
        return Command(words(said), f"{compare} --base-log LOG --new-log LOG")
    are = "is" if found.count == 1 else "are"
    too = f"{are} too few" if found.shows_frac is None else "vary too much"
    why = f"{steps} {too}" if found.count else "No steps were found, which is too little"
    return Command(
        words(f"{why} to compare. Before a change, record again:"), _how_to_record(result, found.record)
    )


def _how_to_record(result: Result, question: Question) -> str:
    """By the recorder that made this one: a schedule, or what prints the line of nsys with the flags."""
    if recorded_by(result.traces[0].kind) is TORCH:
        return schedule()
    configured = known(result.configuration)
    said = known(configured.framework) if configured else None
    flags = _FLAGS.get(said or result.framework)
    return f"moe-diag capture --for {question}{f' --framework {flags}' if flags else ''}"
