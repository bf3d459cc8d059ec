"""What a fix changes, knob by knob, and the lines that say it in each framework."""

from itertools import chain
from typing import Final

from msgspec import Struct

from heuristics.result.judged import Knobs
from heuristics.run.run import Run
from heuristics.words import say
from traces.settings.harness_recipes import RECIPE
from traces.settings.knobs import knobs
from traces.settings.printed import change_of
from traces.settings.settings import Framework, Settings, Values
from traces.settings.spelling import (
    LAYOUT,
    can_spell,
    harness_line,
    in_section,
    is_left_out,
    is_open,
    spell,
    with_twins,
)
from traces.texts import Texts

NO_LINES: Final = Knobs((), (), (), (), ())


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """A change: knob -> value; None is null, or left out. A value that only the user knows is
    `is_open`.

    `set`: in every framework; `megatron_lm`, `megatron_bridge`: in one of them. `harness`: flags of
    Bridge's scripts, where they are not those of the knobs. `launch`: what no knob says, in the
    environment or before the command; `pytorch`: lines of code; `how`: sentences, for what no line
    can say. `by_release`: another release would get other knobs; `since`: the Megatron-Core that
    the change needs, where that is newer than its knobs.
    """

    set: Values = {}
    megatron_lm: Values = {}
    megatron_bridge: Values = {}
    harness: Texts | None = None
    launch: Texts = ()
    pytorch: Texts = ()
    how: Texts = ()
    by_release: bool = False
    since: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a value is left for the user to fill in."""
        ours = (*self.megatron_lm.values(), *self.megatron_bridge.values())
        return any(map(is_open, (*self.set.values(), *ours)))

    def of(self, framework: Framework | None, settings: Settings) -> Values:
        """Knobs as a framework takes them, Megatron-LM where it is unknown; none that is left to
        fill in.
        """
        if framework == "megatron_bridge":
            return _closed(in_section({**self.megatron_bridge, **self.set}, settings))
        return with_twins(_closed({**self.megatron_lm, **self.set}))

    def in_run(self, run: Run) -> Values:
        return self.of(run.settings.framework, run.settings)


def sentences(change: Change, run: Run) -> Texts:
    """What no line can say: the change's own words, and values that nothing known of the run
    gives.
    """
    framework = run.settings.framework or "megatron_lm"
    own = change.megatron_bridge if framework == "megatron_bridge" else change.megatron_lm
    texts = []
    for knob, value in {**own, **change.set}.items():
        if is_open(value):
            row = knobs()[knob]
            name = row.bridge if framework == "megatron_bridge" else row.flag
            texts.append(say(f"fixes.open-{_OPEN.get(str(value), 'model')}", setting=name))
    return (*texts, *change.how)


_OPEN: Final = {"2N": "twice", "TP/2": "half", LAYOUT: "layout"}
"""Values that only the user knows, and the sentence in place of a line with each; of others
`open-model`."""


def without_row(change: Change) -> Texts:
    """Its knobs that the table of knobs does not know: no framework's line could set them."""
    named = {**change.set, **change.megatron_lm, **change.megatron_bridge}
    return tuple(name for name in named if name not in knobs())


def _closed(values: Values) -> Values:
    return {knob: value for knob, value in values.items() if not is_open(value)}


def lines(change: Change, run: Run) -> Knobs:
    """A change as lines to paste, in the spelling of the run's release; none that the run has
    already.
    """
    core = run.config.core_text
    variables = _spelled(
        {knob: value for knob, value in change.set.items() if knob.startswith("env.")}, core
    )
    bridge = in_section({**change.megatron_bridge, **change.set}, run.settings)
    overrides = _spelled(bridge, core, "megatron_bridge")
    harness = _of_harness(change, bridge, variables)
    # overrides for what no flag of Bridge's scripts sets: their flags win over them
    if RECIPE in run.settings:
        by_flag = {*chain.from_iterable(harness.values())}
        harness |= {line: sets for line, sets in overrides.items() if not by_flag & {*sets}}
    flags = _spelled({**change.megatron_lm, **_to_say(change, run)}, core)
    launch = _read(change.launch, run.settings.framework or "megatron_lm")
    return Knobs(
        _new(run, "megatron_lm", flags),
        _new(run, "megatron_bridge", overrides),
        _new(run, "megatron_bridge", harness),
        _new(run, None, {**variables, **launch}),
        change.pytorch,
    )


Lines = dict[str, Values]
"""Line -> the knobs that it sets; none where nobody can tell."""


def _of_harness(change: Change, bridge: Values, variables: Lines) -> Lines:
    """Flags of Bridge's scripts: those that the change names, else those of its knobs."""
    if change.harness is not None:
        return _read(change.harness, "megatron_bridge")
    if change.set and len(variables) == len(change.set):
        return {f"--env {line}": sets for line, sets in variables.items()}
    return {
        line: {knob: value}
        for knob, value in bridge.items()
        if not is_open(value) and (line := harness_line(knob, value))
    }


def _read(lines: Texts, framework: Framework) -> Lines:
    return {line: change_of((line,), framework) for line in lines}


def _new(run: Run, framework: Framework | None, known_lines: Lines) -> Texts:
    """Lines that change something; those for another framework than the run's are whole."""
    has = run.config
    if framework not in (None, run.settings.framework or framework):
        return tuple(known_lines)
    return tuple(
        line
        for line, sets in known_lines.items()
        if not sets
        or any(not has.known(knob) or has.value(knob) != value for knob, value in sets.items())
    )


def _to_say(change: Change, run: Run) -> Values:
    """What Megatron-LM's command has to say: what must be off is left out of it only where it is
    on.
    """
    return {
        knob: value
        for knob, value in change.set.items()
        if not knob.startswith("env.")
        and (not is_left_out(knob, value) or run.config.first(knob) not in (None, False))
    }


def _spelled(values: Values, core: str | None, framework: Framework = "megatron_lm") -> Lines:
    """Each knob by the release's name; by the newest where the release does not have it yet.

    None of a value that only the user knows: nobody could type its line.
    """
    spelled_lines = Lines()
    for knob, value in values.items():
        is_bridge = framework == "megatron_bridge"
        of_shell = knob.startswith("env.") and is_bridge
        if is_open(value) or of_shell or not can_spell(knob, framework):
            continue
        spelled = {knob: value} if is_bridge else with_twins({knob: value})
        release = core if can_spell(knob, framework, core) else None
        for line in spell({knob: value}, framework, release):
            spelled_lines[line] = {**spelled_lines.get(line, {}), **spelled}
    return spelled_lines
