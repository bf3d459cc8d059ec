"""Which recording, GPUs and steps a result is of: the first lines of a page."""

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.called import called
from reports.content.analysis.times import scale_of, stretch_name, telling_rank
from reports.content.blocks import Code, Words, words
from reports.content.names import beyond, gpu_of, when
from reports.rows import each
from traces.missing import known
from traces.spelling import counted, gpu_model, milliseconds, percent


def title(result: Result) -> Words:
    return words(Code(result.traces[0].name), beyond(len(result.traces), 1))


def facts(result: Result) -> Words:
    rank = telling_rank(result)
    scale, steps = scale_of(rank), rank.steps
    start = f"{gpu_of(rank)}, GPU {rank.device}; "
    if len(result.ranks) > 1:
        start = f"{_gpus(result, known(rank.gpu))}; {called(result, rank)}: "
    if not steps.used:
        return words(f"{start}no steps found, window of {scale.length}")
    # a block is what repeats where nothing shows that it is a step
    name = "repeating block" if steps.unit == "block" else stretch_name(steps)
    steps_words = f"{start}{counted(len(steps.used), name)} of {scale.lengths}"
    low_ns, high_ns = known(steps.min_ns), known(steps.max_ns)
    if low_ns is not None and high_ns is not None and low_ns < high_ns:
        low, high = milliseconds(low_ns), milliseconds(high_ns)
        apart = f"equal within {percent((high_ns - low_ns) / low_ns)}"
        range_ = f"{low} to {high}" if low != high else apart
        steps_words += f" ({range_}{when(steps.alternating, ', uneven')})"
    return words(steps_words, when(steps.dropped, f", {len(steps.dropped)} left out"))


def _gpus(result: Result, model: str | None) -> str:
    """How many GPUs, of which model, and how many processes share them; just these where none can
    tell.
    """
    used = {
        (rank.trace, rank.device if rank.physical_gpu is UNSET else rank.physical_gpu)
        for rank in result.ranks
    }
    count, processes = len(used), len(result.ranks)
    of = "model not known" if model is None else gpu_model(model)
    if count == processes:
        if model is None:
            return f"{count} GPUs, {of}"
        return f"{count} x {of}"
    if UNSET in each(result.ranks, "physical_gpu"):
        return f"{processes} processes, {of}"
    gpus = "one GPU" if count == 1 else f"{count} GPUs"
    return f"{gpus}, {of}, shared by {processes} processes"
