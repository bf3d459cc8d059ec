"""A configuration whose estimated memory is more than its GPU has."""

from collections.abc import Iterator
from typing import Final

from heuristics.findings.finding import Case, Detector
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.guides.memory_use import estimated, ran, ran_out, too_large
from heuristics.result.configured import ConfigFinding
from heuristics.rules.check import check_rules
from heuristics.run.run import Run
from traces.missing import Missing
from traces.sizes.memory import delta
from traces.spelling import gigabytes


def estimate_too_large(case: Case) -> ConfigFinding | None:
    """The fullest rank needs more memory than there is, by the estimate: certain only beyond its error."""
    run = case.run
    found = None if ran_out(run) else too_large(run)
    if found is None:
        return None
    where = f"pipeline stage {found.stage}" if (run.config.pp or 1) > 1 else "each GPU"
    least, most = gigabytes(found.least_bytes), gigabytes(found.most_bytes)
    guess = f"about {gigabytes(found.estimate_bytes)} (estimated, {least} to {most})"
    certain = found.is_certain and not ran(run)
    return ConfigFinding(
        "CFG-memory-estimate",
        "does_not_fit" if certain else "may_not_fit",
        f"{where} {'needs' if certain else 'may need'} {guess}, and the {run.gpu or 'GPU'} has "
        f"{gigabytes(found.capacity_bytes)}",
        "the run did start: is this its configuration, and its GPU?" if ran(run) else "sizes of the model",
        _cure(run, found.estimate_bytes - found.capacity_bytes),
    )


def _cure(run: Run, needed: int) -> str:
    """What frees the missing bytes and is allowed, in the order of the workflow."""
    chosen: list[tuple[str, int]] = []
    for fix, freed in _freed(run):
        if sum(count for _, count in chosen) < needed:
            chosen.append((fix, freed))
    if not chosen:
        return "more GPUs, or a smaller micro-batch or sequence length"
    named = ", ".join(f"{fix} (frees {gigabytes(freed)})" for fix, freed in chosen)
    return f"in this order: {named}"


def _freed(run: Run) -> Iterator[tuple[str, int]]:
    """What each memory fix alone frees on the fullest rank, if no rule refuses it."""
    before, memory = {one.id for one in check_rules(run)}, estimated(run)
    for name in WALL_ORDER["memory"]:
        changes = CATALOGUE[name].change(run).in_run(run)
        added = delta(memory, estimated(run.changed(changes))) if changes else 0
        if isinstance(added, Missing) or added >= 0:
            continue
        broken = {one.id for one in check_rules(run.changed(changes)) if one.level == "error"}
        if broken <= before:
            yield name, -added


DETECTORS: Final[tuple[Detector, ...]] = (estimate_too_large,)
