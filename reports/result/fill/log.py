"""`log`: what the training log tells."""

from typing import Final

from heuristics.judging.judgement import Judgement
from heuristics.result.configured import Log
from reports.result.fill.configured import GIVE_LOG, NOT_GIVEN
from reports.result.fill.parts import because, each
from traces.limits import Limit
from traces.missing import OrMissing, gap
from traces.training_log.memory import peak_memory
from traces.training_log.own_lines import overlaps_on

STEADY_SHOWN: Final = Limit(
    2000, "iterations", "ours: the last ones, as two runs are compared by hundreds, and a file one can open"
)


def log(judgement: Judgement) -> OrMissing[Log]:
    """The log, its steady iterations and its peak of memory."""
    if judgement.from_files is None:
        return NOT_GIVEN
    found, steady = judgement.run.log, judgement.from_files.steady
    if found is None:
        return gap("no training log was given", GIVE_LOG)
    peak, left_out = peak_memory(found), [one.reason for one in (steady.left_out if steady else ())]
    last = (steady.with_far_above if steady else ())[-int(STEADY_SHOWN.value) :]
    filled = Log(
        name=found.name,
        line_count=found.line_count,
        iteration_count=len(found.iterations),
        last_iteration=found.iterations[-1].index if found.iterations else None,
        planned_iterations=found.planned_iterations,
        steady_count=steady.count if steady else 0,
        left_out={reason: left_out.count(reason) for reason in sorted(set(left_out))},
        steady_step_ns=steady.median_ns if steady else None,
        iterations_ns=tuple(one.length_ns for one in last),
        spread_ns=steady.spread_ns if steady else None,
        peak_allocated_bytes=peak.allocated_bytes if peak else None,
        peak_reserved_bytes=peak.reserved_bytes if peak else None,
        skipped_lines=found.skipped,
        versions=found.versions,
        overlaps_on=overlaps_on(found),
    )
    unsteady = gap("it holds no steady iterations", "give a longer log")
    how = "give the log from its start, where trainers report it"
    unreported = gap("no report of memory in it has that", how)
    return because(
        filled,
        {
            **each(("steady_step_ns", "spread_ns"), unsteady),
            **each(
                ("last_iteration", "planned_iterations"), gap("it numbers no iterations", "give a longer log")
            ),
            **each(("peak_allocated_bytes", "peak_reserved_bytes"), unreported),
        },
    )
