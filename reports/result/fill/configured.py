"""What files say of a run: `configuration` to `throughput`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from heuristics.judging.judgement import Judgement
from heuristics.result import configured as typed
from heuristics.result.judged import Checked as Answered
from reports.result.fill.parts import all_copied, because, copied
from reports.result.fill.plan import GIVE
from reports.result.fill.shown import is_withheld, shown
from traces.missing import OrMissing, gap
from traces.sizes.memory import MemoryEstimate

if TYPE_CHECKING:  # loaded with a configuration only
    from heuristics.run.run import Run

NOT_GIVEN: Final = gap("no configuration was given", GIVE)
GIVE_LOG: Final = "give the training log: --log FILE"


def configuration(judgement: Judgement, redact: bool) -> OrMissing[typed.Configuration]:
    """The configuration as it was understood. `redact`: texts that may be a path or a name are withheld."""
    if judgement.from_files is None:
        return NOT_GIVEN
    checked, settings = judgement.from_files, judgement.run.config.written
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
        checked=tuple(copied(one, Answered) for one in checked.own_answers),
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


def memory_estimate(judgement: Judgement) -> OrMissing[MemoryEstimate]:
    """Memory of the fullest rank by part."""
    if judgement.from_files is None:
        return NOT_GIVEN
    return judgement.from_files.memory
