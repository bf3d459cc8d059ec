"""What files say of a run: `configuration` to `throughput`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from heuristics.guides.mfu_bands import mfu_band
from heuristics.judging.judgement import Judgement
from heuristics.result import configured as typed
from heuristics.result.judged import Checked as Answered
from reports.result.fill.parts import all_copied, because, copied, each
from reports.result.fill.plan import GIVE
from reports.result.fill.shown import is_withheld, shown
from traces.missing import Missing, OrMissing, gap
from traces.sizes.memory import MemoryEstimate

if TYPE_CHECKING:  # loaded with a configuration only
    from heuristics.judging.checked import Checked
    from heuristics.rules.failures.failure import Failure
    from heuristics.run.run import Run

NOT_GIVEN: Final = gap("no configuration was given", GIVE)
GIVE_LOG: Final = "give the training log: --log FILE"


def configuration(judgement: Judgement, redact: bool) -> OrMissing[typed.Configuration]:
    """The configuration as it was understood. `redact`: texts that may be a path or a name are withheld."""
    if judgement.from_files is None:
        return NOT_GIVEN
    checked, settings = judgement.from_files.checked, judgement.run.config.written
    filled = typed.Configuration(
        framework=settings.framework,
        legal=checked.legal,
        versions=_versions(judgement.run),
        settings=tuple(
            typed.Setting(
                knob, shown(knob, one.value, redact), one.said, is_withheld(knob, one.value, redact)
            )
            for knob, one in sorted(settings.by_knob.items())
        ),
        problems=tuple(all_copied(one, typed.Problem) for one in checked.problems),
        checked=tuple(copied(one, Answered) for one in checked.answers),
    )
    return because(filled, {"framework": gap("no file shows the framework of this spelling", GIVE)})


def _versions(run: Run) -> typed.Versions:
    config = run.config
    versions = typed.Versions(
        core=config.version_text("core"),
        bridge=config.version_text("bridge"),
        torch=config.version_text("torch"),
        te=config.version_text("te"),
    )
    names = typed.Versions.__struct_fields__
    return because(versions, {name: gap("it is not given", f"--{name}-version") for name in names})


def defects(judgement: Judgement) -> tuple[typed.Defect, ...]:
    """Every defect once, heaviest first."""
    if judgement.from_files is None:
        return ()
    return tuple(
        replace(one, set={knob: "null" if value is None else value for knob, value in one.set.items()})
        for one in judgement.from_files.checked.defects
    )


def _told_by(checked: Checked, id: str) -> str:
    """The entry that tells it, where that is another's."""
    entry = next((one.id for one in checked.defects if one.tells(id)), "")
    return "" if entry == id else entry


def findings(judgement: Judgement) -> tuple[typed.ConfigFinding, ...]:
    """Contradictions first, then what failures of the log mean."""
    if judgement.from_files is None:
        return ()
    checked = judgement.from_files.checked
    own = (copied(one, typed.ConfigFinding, same_as=_told_by(checked, one.id)) for one in checked.findings)
    return (*own, *(_failure(one, checked) for one in checked.failures))


def _failure(one: Failure, checked: Checked) -> typed.ConfigFinding:
    where = f"line {one.line} of the log" if one.line else "the configuration"
    told = next((defect.id for defect in checked.defects if defect.tells(one.id)), "")
    return typed.ConfigFinding(
        id=one.id,
        state=one.state,
        text=one.text,
        evidence=f"{where}; to confirm: {one.confirm} ({one.source})",
        fix=f"{one.fix_id}: {one.fix}" if one.fix_id else one.fix,
        same_as=told if any(broken.rule.id == told for broken in checked.broken) else "",
    )


def rules(judgement: Judgement) -> OrMissing[typed.Rules]:
    """What the framework's versions reject, warn of or ignore."""
    if judgement.from_files is None:
        return NOT_GIVEN
    checked, run = judgement.from_files.checked, judgement.run
    return typed.Rules(
        broken=tuple(
            copied(
                one.rule,
                typed.BrokenRule,
                level=one.level,
                text=one.text,
                seen=_seen(one.rule.knobs, run),
                same_as=_told_by(checked, one.rule.id),
            )
            for one in checked.broken
        ),
        undecided=tuple(
            copied(one.rule, typed.UndecidedRule, asks=one.asks, broken_by_default=one.broken_by_default)
            for one in checked.undecided
        ),
    )


def _seen(names: Sequence[str], run: Run) -> tuple[typed.SetAt, ...]:
    """Where the knobs of a rule were set; knobs that nobody set are left out."""
    by_knob = run.config.written.by_knob
    return tuple(typed.SetAt(knob, by_knob[knob].said) for knob in names if knob in by_knob)


def workflow(judgement: Judgement) -> tuple[typed.WorkflowStep, ...]:
    """The published workflow rule by rule."""
    if judgement.from_files is None:
        return ()
    checked = judgement.from_files.checked
    return tuple(
        copied(
            one.judged,
            typed.WorkflowStep,
            id=one.rule.id,
            phase=one.rule.phase,
            title=one.rule.title,
            seed=one.rule.seed,
            guide_only=one.rule.guide_only,
            same_as=_told_step(checked, one.rule.id) if one.judged.state == "violated" else "",
        )
        for one in checked.steps
    )


def _told_step(checked: Checked, id: str) -> str:
    return next((one.id for one in checked.defects if one.tells(id)), "")


def experiments(judgement: Judgement) -> OrMissing[typed.Experiments]:
    """The plan as runs to make."""
    return judgement.from_files.experiments if judgement.from_files else NOT_GIVEN


def memory_estimate(judgement: Judgement) -> OrMissing[MemoryEstimate]:
    """Memory of the fullest rank by part."""
    if judgement.from_files is None:
        return NOT_GIVEN
    return judgement.from_files.checked.memory


def throughput(judgement: Judgement) -> OrMissing[typed.Throughput]:
    """Rates of one GPU, by the log's steady step where there is one."""
    if judgement.from_files is None:
        return NOT_GIVEN
    checked: Checked = judgement.from_files.checked
    found, steady = checked.throughput, checked.steady
    step_ns = steady.median_ns if steady else judgement.step_ns
    if isinstance(found, Missing) or step_ns is None:
        return found if isinstance(found, Missing) else None
    profiled = "configuration and profiled step"
    config, share = judgement.run.config, found.mfu_frac
    band = None if share is None else mfu_band(share, config.family, config.gpu)
    filled = copied(
        found,
        typed.Throughput,
        step_ns=step_ns,
        peak=copied(found.peak, typed.Peak) if found.peak else None,
        source="configuration and the log's steady step" if steady else profiled,
        references=checked.references,
        nearest=checked.nearest,
        mfu_band=band or UNSET,
    )
    unknown = gap("the GPU, or its peak in this precision, is unknown", "--gpu-model, --precision")
    return because(filled, each(("mfu_frac", "peak"), unknown))
