"""Changes of knobs as lines that can be pasted."""

from typing import Final

from traces.settings.effective import OFF_UNLESS_SAID
from traces.settings.knobs import Knob, Release, by_flag, flag_named, knobs, release
from traces.settings.line_parts import VALUE, as_word
from traces.settings.settings import Framework, KnobView, Settings, Value, Values, entries_of
from traces.texts import Texts

LAYOUT: Final = "LAYOUT"
_OPEN: Final = ("N", "2N", "TP/2", LAYOUT, VALUE)
_SECTION: Final = {name: f"comm_overlap.{name}" for name in (*OFF_UNLESS_SAID, "tp_comm_overlap")}
"""Overlaps that Bridge's comm_overlap writes over the model's."""
_REDUCTIONS: Final = ("overlap_grad_reduce", "overlap_param_gather")


def is_open(value: Value) -> bool:
    """Whether a value stands for one that only the user knows."""
    return value in _OPEN


def spelled(value: object) -> str:
    """A value of a setting in words; tuples are lists once a document was read."""
    match value:
        case None:
            return "none"
        case bool():
            if value:
                return "on"
            return "off"
        case tuple() | list():
            return " ".join(map(str, value)) or "none"
    return str(value)


def with_twins(changes: Values) -> Values:
    """Changes with the knobs that the same flags of Megatron-LM set."""
    twins = {}
    for name, value in changes.items():
        if not (knob := knobs().get(name)):
            continue
        for twin, _ in by_flag().get(knob.flag or knob.off, ()):
            twins[twin.id] = value
    return {**twins, **changes}


def in_section(changes: Values, settings: Settings) -> Values:
    """Changes as Bridge takes them: overlaps go into comm_overlap, which writes them over the
    model's.

    What a section leaves out it switches off, so a new one repeats what the model alone has on
    (training/comm_overlap.py, CommOverlapConfig.setup).
    """
    view = KnobView(settings)
    is_new = not view.group("comm_overlap.")
    reduces = any(f"comm_overlap.{name}" in settings for name in _REDUCTIONS)
    moved_changes = {}
    for knob, value in changes.items():
        moved_changes[_in_section(knob, reduces)] = value
    if is_new and not moved_changes.keys().isdisjoint(_SECTION.values()):
        for knob, moved in _SECTION.items():
            if view.value(knob) is True:
                moved_changes.setdefault(moved, True)
    return moved_changes


def _in_section(knob: str, reduces: bool) -> str:
    name = knob.removeprefix("ddp.")
    if knob in _SECTION or (reduces and name in _REDUCTIONS):
        return f"comm_overlap.{name}"
    return knob


def harness_line(knob_id: str, value: Value) -> str:
    """The flag of Bridge's scripts/performance for a knob; empty where there is none."""
    knob = knobs().get(knob_id)
    if not knob or not knob.harness:
        return ""
    text = as_word(",".join(map(str, value))) if isinstance(value, tuple) else _word(value)
    return f"{knob.harness} {text}"


def is_left_out(knob_id: str, value: Value) -> bool:
    """Whether Megatron-LM's command says a value by saying nothing."""
    knob = knobs().get(knob_id)
    if knob and knob.kind == "bool":
        return not (knob.flag if value else knob.off)
    return value in (None, ())


def can_spell(knob_id: str, framework: Framework, core_version: str | None = None) -> bool:
    """Whether a framework, at a release of Megatron-Core, has a way to say the knob."""
    knob, core = knobs().get(knob_id), release(core_version)
    if not knob or knob.kind == "given" or (core is not None and not knob.is_known_in(core)):
        return False
    if knob_id.startswith("env."):
        return True
    if framework == "megatron_bridge":
        return bool(knob.bridge)
    return bool(knob.flag or knob.off) and (core is None or knob.flag_since <= core)


def spell(changes: Values, framework: Framework, core_version: str | None = None) -> Texts:
    """Lines that make the changes, in a framework's spelling at a release; the newest where it is
    None.

    Raises:
        ValueError: a knob that `can_spell` says cannot be.
    """
    core = release(core_version)
    lines = dict[str, None]()
    for knob_id, value in changes.items():
        if not can_spell(knob_id, framework, core_version):
            raise ValueError(f"{knob_id} has no spelling there")
        lines[_line(knobs()[knob_id], value, framework, core)] = None
    return tuple(lines)


def _line(knob: Knob, value: Value, framework: Framework, core: Release | None) -> str:
    if knob.id.startswith("env."):
        name = knob.id.removeprefix("env.")
        if value is None:
            return f"(leave out {name})"
        return f"{name}={_word(value)}"
    if framework == "megatron_bridge":
        group, dot, newest = knob.bridge.rpartition(".")
        name = knob.name_in(core) if knob.older else newest
        return f"{group}{dot}{name}={_override(value)}"
    return _flag_line(knob, value, core)


def _flag_line(knob: Knob, value: Value, core: Release | None) -> str:
    flag = knob.flag
    if knob.name_in(core) != knob.id.rpartition(".")[2]:
        flag = flag_named(knob.name_in(core))
    if knob.kind == "bool":
        if value:
            return flag or f"(leave out {knob.off})"
        return knob.off or f"(leave out {flag})"
    if value is None or value == ():
        return f"(leave out {flag})"
    if isinstance(value, tuple) and knob.kind == "int|list":
        return f'{flag} "[{",".join(map(str, value))}]"'
    return f"{flag} {' '.join(map(_word, entries_of(value)))}"


def _override(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_override, value))}]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return _word(value)


def _word(value: Value) -> str:
    text = str(value)
    if text == LAYOUT:
        return f'"{text}"'
    return as_word(text)
