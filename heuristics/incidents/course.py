"""How a run went, as rows of incidents ask: how its steps move, what it waits for, when memory ran
out.
"""

from heuristics.comparison.files.logs import drift_of_steps
from heuristics.facts.dictionary import fact
from heuristics.run.run import Run
from traces.statistics.drift import Drift
from traces.training_log.iterations import steady_step
from traces.training_log.log import Message


@fact
def drift(run: Run) -> Drift | None:
    """How its steps move from the first to the last, by the log; None where too few of them are
    logged.
    """
    steady = steady_step(run.log)
    if steady:
        return drift_of_steps(steady.used)
    return None


@fact
def ran_a_step(run: Run) -> bool | None:
    """Whether a step was logged before memory ran out; None where no error or no step is in the
    log.
    """
    log = run.log
    if not log or not log.out_of_memory or not log.iterations:
        return None
    return log.iterations[0].line < log.out_of_memory[0].line


@fact
def collective_timeout(run: Run) -> Message | None:
    """The line of the first collective that timed out."""
    if run.log:
        return run.log.first("collective-timeout")
    return None


@fact
def unexplained(run: Run) -> bool:
    """Nothing tells what the host does while the GPU is idle: neither launches nor another
    cause.
    """
    absent_frac = run.observed.absent_frac or {}
    return not any(absent_frac.values()) and run.observed.allocator_calls_per_step is None
