"""The last line of a page: what to type next."""

from typing import Final

from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from reports.content.analysis.times import stretch_name
from reports.content.analysis.unproven import nothing_judged
from reports.content.blocks import Command
from reports.content.names import optional
from traces.recording.line import schedule
from traces.recording.options import Question, TrainedWith
from traces.recording.recorder import TORCH, recorded_by
from traces.spelling import counted, file_word

_FLAGS: Final = {"megatron_bridge": TrainedWith.BRIDGE, "pytorch": TrainedWith.PYTORCH}
"""Who marks the steps, if not Megatron-LM: by the configuration, or by names of the recording."""


def next_command(result: Result) -> Command:
    trace = result.traces[0]
    path = file_word(trace.path or trace.name)
    if result.verdict.startup_ns or nothing_judged(result):
        return Command("Record again:", _how_to_record(result, Question.WALLS))
    if result.fixes or result.levers:
        return _did_it_help(result, path)
    return Command("What this recording is enough for:", f"moe-diag doctor {path}")


def _did_it_help(result: Result, path: str) -> Command:
    """The comparison with a later recording, or how to record steps enough for it."""
    enough = enough_steps(result)
    compare = f"moe-diag compare {'BEFORE/ AFTER/' if len(result.traces) > 1 else f'{path} AFTER'}"
    if enough.decides:
        log = result.log
        if log and enough.by_log:
            compare += f" --base-log {file_word(log.name)} --new-log LOG"
        return Command("Did it help?", compare)
    steps = counted(enough.count, stretch_name(result.ranks[0].steps))
    if enough.record is None:
        not_enough = f"{steps} vary too much to compare. With the logs of both runs:"
        return Command(not_enough, f"{compare} --base-log LOG --new-log LOG")
    if not enough.count:
        why = "No steps were found, which is too little"
    elif enough.shows_frac is None:
        why = f"{steps} {'is' if enough.count == 1 else 'are'} too few"
    else:
        why = f"{steps} vary too much"
    record_again = f"{why} to compare. Before a change, record again:"
    return Command(record_again, _how_to_record(result, enough.record))


def _how_to_record(result: Result, question: Question) -> str:
    """By the recorder that made this one: a schedule, or what prints the line of nsys with the
    flags.
    """
    if recorded_by(result.traces[0].kind) is TORCH:
        return schedule()
    configured = result.configuration
    framework = (configured and configured.framework) or result.framework
    flags = optional(" --framework {}", _FLAGS.get(framework))
    return f"moe-diag capture --for {question}{flags}"
