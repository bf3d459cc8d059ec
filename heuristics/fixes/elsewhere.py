"""Fixes for a run that is not Megatron's: the change in plain PyTorch, or one that any framework takes."""

from collections.abc import Mapping
from dataclasses import replace

from heuristics.fixes.added import added_fixes
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, the_same
from heuristics.run.run import Run
from traces.names.frameworks import Framework


def fixes_of(framework: Framework) -> Mapping[str, Fix]:
    """The catalogue, with fixes of plug-ins, as a framework takes it: without what it has no words for."""
    every = {**CATALOGUE, **added_fixes()}
    if framework == "megatron":
        return every
    found = {}
    for number, fix in every.items():
        if framework == "pytorch" and fix.pytorch:
            found[number] = _in_pytorch(fix, fix.pytorch)
        elif fix.any_framework:
            found[number] = _without_flags(fix)
    return found


def _in_pytorch(fix: Fix, form: Form) -> Fix:
    """The fix in PyTorch's words; what was measured of it is Megatron's and left out."""
    kinds = fix.kinds if form.kinds is None else form.kinds
    return replace(
        fix,
        title=form.title,
        kinds=kinds,
        direct=fix.direct if form.kinds is None else None,
        wins=fix.wins if form.kinds is None else None,
        change=lambda run: Change(pytorch=form.code_for(run), launch=form.environment),
        advice=form.advice,
        versions=form.versions,
        gains=(),
        side_effects=form.side_effects,
        excludes=(),
        verify=form.verify,
        sources=form.sources,
        changes=form.changes,
        of_run=the_same,
        per_token=lambda run: form.per_token,
    )


def _without_flags(fix: Fix) -> Fix:
    def change(run: Run) -> Change:
        return Change(launch=fix.knobs(run).environment)

    return replace(fix, change=change, versions="any: no matter of the framework", gains=(), excludes=())
