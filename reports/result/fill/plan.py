"""`fixes`, `levers` and `refused`: what to try, and what not."""

from collections.abc import Iterable, Sequence
from typing import Final

from heuristics.fixes.change import lines, sentences
from heuristics.fixes.fix import Gain
from heuristics.incidents.incident import known_issues
from heuristics.judging.judgement import Judgement
from heuristics.plan.clues import why_first
from heuristics.plan.gains import acts_on, wide_because
from heuristics.plan.planned import Planned, Refused
from heuristics.result import judged as typed
from heuristics.run.run import Run
from traces.missing import Missing, gap
from traces.patterns import compiled
from traces.sections.section import copied

GIVE: Final = "give the run's configuration: --config FILE"
_MEASURE: Final = gap(
    "no measurement of this change is published with its shape", "measure it on one run of your own"
)


def fixes(judgement: Judgement, planned: Sequence[Planned]) -> tuple[typed.Fix, ...]:
    """Changes to try, in their order."""
    rooms = judgement.from_files.rooms if judgement.from_files else {}
    return tuple(fix(one, _checked(judgement, one), rooms.get(one.fix.id), judgement.run) for one in planned)


def fix(
    planned: Planned,
    checked: tuple[typed.Checked, ...] = (),
    room: typed.Room | None = None,
    run: Run | None = None,
) -> typed.Fix:
    """One change to try. `checked`: what each tier says of it; `room`: of one that moves memory.

    `run`: whose published issues stand beside it.
    """
    arms = {name: lines(one, run) for name, one in planned.fix.arms(run).items()} if run else {}
    gains = (f"{gain.text} ({gain.source})" for gain in _own_first(planned.fix.gains, run))
    return copied(
        typed.Fix,
        planned.fix,
        knobs=planned.knobs,
        preconditions=tuple(copied(typed.Precondition, one) for one in planned.preconditions),
        checked=checked,
        after=planned.after,
        room=room,
        gain_frac=_gain(planned),
        gain_replayed=planned.replayed,
        per_token=run is not None and planned.fix.counts_tokens(run),
        gain_source="; ".join(gains) or _MEASURE,
        shares_with=planned.shares_with,
        known_issues=known_issues(planned.fix.id, planned.change.in_run(run), run) if run else (),
        first_because=why_first(run, planned.fix.wall, planned.fix.id) if run else "",
        how=sentences(planned.change, run) if run else (),
        acts_on=acts_on(planned, run) if run else {},
        wide_because=wide_because(planned, run) if run else "",
        arms=tuple(typed.Arm(name, knobs) for name, knobs in arms.items()),
    )


_WORD: Final = compiled(r"\w+")


def _own_first(gains: Iterable[Gain], run: Run | None) -> list[Gain]:
    """Published measurements, those of the run's own GPU first."""
    family = run.config.gpu_family if run else None
    own = {family.name} if family else set[str]()
    return sorted(gains, key=lambda gain: not own <= {*_WORD.findall(gain.text)})


def _gain(planned: Planned) -> Missing | tuple[float | Missing, float]:
    """From the lower end, which is missing where the fix itself was not replayed, to the ceiling."""
    untold = gap(planned.low_because, planned.low_cure)
    if planned.ceiling_frac is None:
        return untold
    return (untold if planned.low_frac is None else planned.low_frac, planned.ceiling_frac)


def _checked(judgement: Judgement, planned: Planned) -> tuple[typed.Checked, ...]:
    """What each tier says of a fix, merged into the whole configuration."""
    told = judgement.from_files
    if told is None:
        return (typed.Checked("rules", "not_checked", f"no configuration was given; {GIVE}"),)
    after = f" after {' and '.join(planned.after)}" if planned.after else ""
    said = f"merged into the configuration{after} it breaks no rule of these versions"
    if told.legal is False:
        said = (
            f"the change{after} breaks no rule by itself; the errors of the configuration are corrected first"
        )
    asked = (copied(typed.Checked, one) for one in told.answers.get(planned.fix.id, ()))
    return (typed.Checked("rules", "ok", said), *asked)


def refused(judgement: Judgement) -> tuple[typed.Refused, ...]:
    """Changes that are not in the plan."""
    return tuple(refused_fix(one) for one in judgement.plan.refused)


def refused_fix(one: Refused) -> typed.Refused:
    """One change that is not in the plan, and who says so."""
    return copied(typed.Refused, one.fix, one, source=one.source or "; ".join(one.fix.sources))
