"""What a fix changes, knob by knob, and the lines that say it in each framework."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from heuristics.result.judged import Knobs
from heuristics.run.run import Run
from traces.settings.harness_recipes import RECIPE
from traces.settings.knobs import knobs
from traces.settings.printed import change_of
from traces.settings.settings import Framework, Settings, Value
from traces.settings.spelling import (
    can_spell,
    harness_line,
    in_section,
    is_left_out,
    is_open,
    spell,
    with_twins,
)

MICRO_BATCH: Final = "train.micro_batch_size"


NO_LINES: Final = Knobs((), (), (), (), ())


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """A change: knob -> value; None is null, or left out. A value that only the user knows is `is_open`.

    `set`: in every framework; `megatron_lm`, `megatron_bridge`: in one of them. `harness`: flags of Bridge's
    scripts, where they are not those of the knobs. `launch`: what no knob says, in the environment or before
    the command; `pytorch`: lines of code. `by_release`: another release would get other knobs;
    `since`: the Megatron-Core that the change needs, where that is newer than its knobs.
    """

    set: Mapping[str, Value] = {}
    megatron_lm: Mapping[str, Value] = {}
    megatron_bridge: Mapping[str, Value] = {}
    harness: tuple[str, ...] | None = None
    launch: tuple[str, ...] = ()
    pytorch: tuple[str, ...] = ()
    by_release: bool = False
    since: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a value is left for the user to fill in."""
        several = (self.set, self.megatron_lm, self.megatron_bridge)
        return any(is_open(value) for one in several for value in one.values())

    def of(self, framework: Framework | None, settings: Settings) -> dict[str, Value]:
        """Knobs as a framework takes them, Megatron-LM where it is unknown; none that is left to fill in."""
        if framework == "megatron_bridge":
            return _closed(in_section({**self.megatron_bridge, **self.set}, settings))
        return with_twins(_closed({**self.megatron_lm, **self.set}))

    def in_run(self, run: Run) -> dict[str, Value]:
        return self.of(run.settings.framework, run.settings)


def without_row(change: Change) -> tuple[str, ...]:
    """Its knobs that the table of knobs does not know: no framework's line could set them."""
    named = {**change.set, **change.megatron_lm, **change.megatron_bridge}
    return tuple(knob for knob in named if knob not in knobs())


def _closed(values: Mapping[str, Value]) -> dict[str, Value]:
    return {knob: value for knob, value in values.items() if not is_open(value)}


def lines(change: Change, run: Run) -> Knobs:
    """A change as lines to paste, in the spelling of the run's release; none that the run has already."""
    core = run.config.core_text
    variables = _spelled(change.set, core, is_environment=True)
    bridge = in_section({**change.megatron_bridge, **change.set}, run.settings)
    harness = change.harness
    if harness is None and change.set and len(variables) == len(change.set):
        harness = tuple(f"--env {line}" for line in variables)
    elif harness is None:
        harness = tuple(line for knob, value in bridge.items() if (line := harness_line(knob, value)))
    if RECIPE in run.settings:
        harness = (*harness, *_beside(harness, bridge, core))
    flags = _spelled({**change.megatron_lm, **_to_say(change, run)}, core)
    return Knobs(
        _new(run, "megatron_lm", flags),
        _new(run, "megatron_bridge", _spelled(bridge, core, "megatron_bridge")),
        _new(run, "megatron_bridge", harness),
        _new(run, run.settings.framework, (*variables, *change.launch)),
        change.pytorch,
    )


def _beside(flags: tuple[str, ...], bridge: Mapping[str, Value], core: str | None) -> tuple[str, ...]:
    """Overrides for what no flag of Bridge's scripts sets: their flags win over overrides."""
    by_flag = change_of(flags, "megatron_bridge")
    rest = {knob: value for knob, value in bridge.items() if knob not in by_flag}
    return _spelled(rest, core, "megatron_bridge")


def _new(run: Run, framework: Framework | None, said: tuple[str, ...]) -> tuple[str, ...]:
    """Lines that change something; those for another framework than the run's are whole."""
    own = run.settings.framework or framework or "megatron_lm"
    return said if framework not in (None, own) else tuple(line for line in said if _changes(run, line, own))


def _changes(run: Run, line: str, framework: Framework) -> bool:
    """Whether a line says something else than the run has; one that we cannot read back does."""
    values, has = change_of((line,), framework), run.config
    return not values or any(
        not has.known(knob) or has.value(knob) != value for knob, value in values.items()
    )


def _to_say(change: Change, run: Run) -> dict[str, Value]:
    """What Megatron-LM's command has to say: what must be off is left out of it only where it is on."""
    return {
        knob: value
        for knob, value in change.set.items()
        if not is_left_out(knob, value) or run.config.first(knob) not in (None, False)
    }


def _spelled(
    values: Mapping[str, Value],
    core: str | None,
    framework: Framework = "megatron_lm",
    is_environment: bool = False,
) -> tuple[str, ...]:
    """Each knob by the release's name; by the newest where the release does not have it yet."""
    lines = (
        spell({knob: value}, framework, core if can_spell(knob, framework, core) else None)
        for knob, value in values.items()
        if knob.startswith("env.") is is_environment and can_spell(knob, framework)
    )
    return tuple(dict.fromkeys(line for one in lines for line in one))
