"""How a run went, as rows of incidents and failures ask: how its steps move, what it waits for,
when memory ran out.
"""

from math import prod

from heuristics.comparison.files.logs import drift_of_steps
from heuristics.facts.dictionary import fact
from heuristics.run.run import Run
from traces.limits import LITTLE
from traces.missing import of_known
from traces.sections.hang import Hang
from traces.statistics.drift import Drift
from traces.training_log.iterations import steady_step
from traces.training_log.log import Message, OutOfMemory
from traces.witness.watchdog import hang_of_log


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
def hang(run: Run) -> Hang | None:
    """What the log shows of a hang."""
    return of_known(hang_of_log, run.log)


@fact
def waits_for_layers(run: Run) -> bool | None:
    """Whether what timed out adds up one number a layer, as Megatron does with losses of layers
    over pipeline stages (reduce_aux_losses_tracker_across_ranks).
    """
    layers, line = run.config.positive("num_layers"), run.tells("collective_timeout")
    if not layers or not line or "numel_in" not in line.said:
        return None
    more = run.config.positive("mtp_num_layers") or 0
    is_sum = line.said.get("operation") == "ALLREDUCE"
    return is_sum and int(line.said["numel_in"]) in (layers, layers + more)


@fact
def memory_error(run: Run) -> OutOfMemory | None:
    """The first error that says what was asked for, else the first."""
    errors = run.log.out_of_memory if run.log else ()
    return next((error for error in errors if error.requested_bytes), next(iter(errors), None))


@fact
def asks_for_logits(run: Run) -> bool | None:
    """Whether what did not fit is one tensor of logits: tokens x words, of 2 or 4 bytes."""
    error, config = run.tells("memory_error"), run.config
    knobs = "seq_length", "train.micro_batch_size", "vocab_size"
    elements = prod(config.positive(knob) or 0 for knob in knobs) / (config.tp or 1)
    if not elements or not error or not error.requested_bytes:
        return None
    elements /= config.cp or 1
    return any(
        abs(error.requested_bytes / width - elements) <= LITTLE.value * elements for width in (2, 4)
    )


@fact
def unexplained(run: Run) -> bool:
    """Nothing tells what the host does while the GPU is idle: neither launches nor another
    cause.
    """
    absent_frac = run.observed.absent_frac or {}
    return not any(absent_frac.values()) and run.observed.allocator_calls_per_step is None
