"""`fixes`, `levers` and `refused`: what to try, and what not."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from heuristics.fixes.change import lines, sentences
from heuristics.incidents.incident import known_issues
from heuristics.judging.judgement import Judgement
from heuristics.plan.clues import why_first
from heuristics.plan.gains import acts_on, wide_because
from heuristics.plan.planned import Planned
from heuristics.result import judged as typed
from heuristics.run.run import Run
from traces.missing import Missing, gap, or_gap
from traces.patterns import compiled
from traces.sections.section import copied

GIVE: Final = "give the run's configuration: --config FILE"
_MEASURE: Final = gap(
    "no measurement of this change is published with its shape", "measure it on one run of your own"
)


def fixes(judgement: Judgement, planned: Sequence[Planned]) -> tuple[typed.Fix, ...]:
    """Changes to try, in their order."""
    rooms, made = judgement.from_files.rooms if judgement.from_files else {}, []
    for step in planned:
        made.append(fix(step, judgement.run, _checked(judgement, step), rooms.get(step.fix.id)))
    return tuple(made)


def fix(
    planned: Planned,
    run: Run,
    checked: tuple[typed.Checked, ...] = (),
    room: typed.Room | None = None,
) -> typed.Fix:
    """One change to try. `checked`: what each tier says of it; `room`: of one that moves memory."""
    family, own = run.config.gpu_family, set()
    if family:
        own.add(family.name)
    # published measurements, those of the run's own GPU first
    gains = sorted(planned.fix.gains, key=lambda gain: not own <= {*_WORD.findall(gain.text)})
    untold = gap(planned.low_because, planned.low_cure)
    gain_frac: Missing | tuple[float | Missing, float] = untold
    # the lower end is missing where the fix itself was not replayed
    if planned.ceiling_frac is not None:
        gain_frac = or_gap(planned.low_frac, untold), planned.ceiling_frac
    return copied(
        typed.Fix,
        planned.fix,
        knobs=planned.knobs,
        preconditions=tuple(map(partial(copied, typed.Precondition), planned.preconditions)),
        checked=checked,
        after=planned.after,
        room=room,
        gain_frac=gain_frac,
        gain_replayed=planned.replayed,
        per_token=planned.fix.counts_tokens(run),
        gain_source="; ".join(f"{gain.text} ({gain.source})" for gain in gains) or _MEASURE,
        shares_with=planned.shares_with,
        known_issues=known_issues(planned.fix.id, planned.change.in_run(run), run),
        first_because=why_first(run, planned.fix.wall, planned.fix.id),
        how=sentences(planned.change, run),
        acts_on=acts_on(planned, run),
        wide_because=wide_because(planned, run),
        arms=tuple(
            typed.Arm(name, lines(knobs, run)) for name, knobs in planned.fix.arms(run).items()
        ),
    )


_WORD: Final = compiled(r"\w+")


def _checked(judgement: Judgement, planned: Planned) -> tuple[typed.Checked, ...]:
    """What each tier says of a fix, merged into the whole configuration."""
    files = judgement.from_files
    if not files:
        return (typed.Checked("rules", "not_checked", f"no configuration was given; {GIVE}"),)
    after = f" after {' and '.join(planned.after)}" if planned.after else ""
    answer = f"merged into the configuration{after} it breaks no rule of these versions"
    if files.legal is False:
        answer = (
            f"the change{after} breaks no rule by itself; the errors of the configuration are "
            f"corrected first"
        )
    answers = map(partial(copied, typed.Checked), files.answers.get(planned.fix.id, ()))
    return (typed.Checked("rules", "ok", answer), *answers)


def refused(judgement: Judgement) -> tuple[typed.Refused, ...]:
    """Changes that are not in the plan."""
    filled = []
    for refusal in judgement.plan.refused:
        source = refusal.source or "; ".join(refusal.fix.sources)
        filled.append(copied(typed.Refused, refusal.fix, refusal, source=source))
    return tuple(filled)
