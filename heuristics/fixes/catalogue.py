"""All fixes by id: the tables beside this file, in the order to try them, as each framework takes
them.

The order is first that of the profile table of NVIDIA's MoE optimization workflow (Megatron-Bridge,
skill perf-moe-optimization-workflow), then ours: what costs less to try, and what excludes less,
comes earlier. A row has the fields of `Fix`. A field that asks a run is written out, or names a
function. Written out, `active` and `advice` are needs of needs.toml, or rows like those; elsewhere
a value may be of the run: `{ is = "pp // 2" }` or `{ text = "PP{pp}" }`, where `when` holds.
`of_run`: rows of fields, the first whose `when` holds. `like`: another fix, whose change, versions,
gains, side effects and sources these are where the row has none. Sources name those of sources.toml
in braces.
"""

from collections import ChainMap
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any, Final, get_args

from msgspec import convert
from msgspec.structs import replace

from heuristics.fixes import circumstances, dispatcher, graphs, memory, parallelism, precision
from heuristics.fixes.added import added_fixes
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Catalogue, Changing, Fix, Form, Needing
from heuristics.fixes.needs import named, need_of, shared_needs
from heuristics.fixes.precondition import Needs
from heuristics.rules.condition import RUNS
from heuristics.run.run import WALL_IDS, Run
from heuristics.words import say
from traces.names.frameworks import Framework
from traces.sections.tables import WallId
from traces.settings.knobs import knobs
from traces.toml_tables import WrongRow, written

ROOMS: Final = (circumstances, dispatcher, graphs, memory, parallelism, precision)
"""Where facts stand that needs ask for."""
_LIKE: Final = ("change", "active", "versions", "gains", "side_effects", "sources")


def _read() -> dict[WallId, list[Fix]]:
    rows = {wall: written("heuristics.fixes", f"{wall}.toml") for wall in WALL_IDS}
    by_id = ChainMap(*rows.values())
    return {
        wall: [_fix(wall, number, by_id) for number in numbered] for wall, numbered in rows.items()
    }


def _fix(wall: WallId, number: str, by_id: Mapping[str, Mapping[str, Any]]) -> Fix:
    """A row as a fix. Raises `WrongRow`."""
    own = dict(by_id[number])
    try:
        other = by_id[own.pop("like")] if "like" in own else {}
        same = {name: other[name] for name in _LIKE if name in other}
        row = _with_sources({**same, **own, "id": number, "wall": wall})
        return convert(row, Fix, dec_hook=_asks_a_run)
    except (ValueError, KeyError, AttributeError, ImportError) as error:
        raise WrongRow(f"heuristics/fixes/{wall}.toml, {number}: {error}") from error


_SOURCES: Final[Mapping[str, str]] = written("heuristics.fixes", "sources.toml")


def _with_sources(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row, or its form in another framework, whose sources and gains have them spelled out."""
    filled = dict(row)
    if "sources" in row:
        filled["sources"] = [source.format_map(_SOURCES) for source in row["sources"]]
    if "gains" in row:
        filled["gains"] = [(text, source.format_map(_SOURCES)) for text, source in row["gains"]]
    if "pytorch" in row:
        filled["pytorch"] = _with_sources(row["pytorch"])
    return filled


def _asks_a_run(kind: object, written: Any) -> object:
    """What a field that asks a run is, as a table writes it."""
    if isinstance(written, str):
        return named(written)
    if kind == Needing:
        return partial(_needed, tuple(map(_need, written)))
    if len(get_args(kind)[0]) == 2:
        return partial(_as_it_is, written)
    if kind != Changing:
        return partial(_in_run, written)
    sets = "set", "megatron_lm", "megatron_bridge"
    knob_names = chain.from_iterable(written.get(field, ()) for field in sets)
    if unknown := [knob for knob in knob_names if knob not in knobs()]:
        raise ValueError(
            f"no row of traces/settings/knobs.toml has {', '.join(unknown)}: no line sets it"
        )
    return lambda run: convert(_in_run(written, run), Change)


def _as_it_is(rows: list[dict[str, Any]], fix: Fix, run: Run) -> Fix:
    """The fix with the fields of the first row that is asked in a run."""
    row = next((entry for entry in rows if _is_asked(entry, run)), {})
    fields = _in_run(row, run)
    fields.pop("when", None)
    return replace(fix, **fields)


def _in_run(written: Any, run: Run) -> Any:
    """What a row writes as a run has it: values and texts that ask the run, without those not asked
    there.
    """
    if isinstance(written, list):
        return tuple(_in_run(item, run) for item in written if _is_asked(item, run))
    if not isinstance(written, dict):
        return written
    if "text" in written:
        return RUNS.filled(written["text"], run)
    if "is" in written:
        return RUNS.condition(written["is"]).term.of(run)
    return {name: _in_run(field, run) for name, field in written.items() if _is_asked(field, run)}


def _is_asked(written: Any, run: Run) -> bool:
    if not isinstance(written, dict) or "when" not in written:
        return True
    return RUNS.condition(written["when"]).holds(run) is True


def _need(written: str | Mapping[str, Any]) -> Needing:
    """A need by its name in `needs.toml`, as a row of its own, or as a function."""
    if not isinstance(written, str):
        return need_of(written).of
    if "." in written:
        asks: Needing = named(written)
        return asks
    return shared_needs()[written].of


def _needed(needings: tuple[Needing, ...], run: Run) -> Needs:
    return tuple(need for needing in needings for need in needing(run))


_FIXES: Final = _read()
WALL_ORDER: Final = {
    wall: tuple(fix.id for fix in wall_fixes) for wall, wall_fixes in _FIXES.items()
}
"""Fix ids by wall, in the order to try them."""
_OFFLOAD, _STATE_OFFLOAD = "MEM-6", "MEM-7"
ROOM_ORDER: Final = [*WALL_ORDER["memory"]]
ROOM_ORDER.remove(_OFFLOAD)
ROOM_ORDER.insert(ROOM_ORDER.index(_STATE_OFFLOAD), _OFFLOAD)
"""Memory's where a run does not fit: offload after recompute and parallelism (Megatron-Bridge
v0.6.0, skill perf-moe-optimization-workflow, Phase 1)."""
CATALOGUE: Final[Catalogue] = {
    fix.id: fix
    for fix_list in _FIXES.values()
    for fix in sorted(fix_list, key=lambda fix: int(fix.id.partition("-")[2]))
}
"""Fix id (COM-2) -> fix, by wall and number."""


def fixes_of(framework: Framework) -> Catalogue:
    """The catalogue, with fixes of plug-ins, as a framework takes it: without what it has no words
    for.
    """
    every = {**CATALOGUE, **added_fixes()}
    if framework == "megatron":
        return every
    fixes = {}
    for number, fix in every.items():
        if framework == "pytorch" and fix.pytorch:
            fixes[number] = _in_pytorch(fix, fix.pytorch)
        elif fix.any_framework:
            fixes[number] = _without_flags(fix)
    return fixes


def _in_pytorch(fix: Fix, form: Form) -> Fix:
    """The fix in PyTorch's words; what was measured of it is Megatron's and left out."""
    same = form.kinds is None
    return replace(
        fix,
        title=form.title or fix.title,
        kinds=fix.kinds if form.kinds is None else form.kinds,
        direct=fix.direct if same else None,
        wins=fix.wins if same else None,
        change=form.change,
        active=partial(_told_active, fix, form),
        advice=form.advice,
        versions=form.versions,
        gains=(),
        side_effects=form.side_effects,
        excludes=(),
        verify=form.verify or fix.verify,
        sources=form.sources or fix.sources,
        changes=form.changes,
        of_run=lambda fix, run: fix,
    )


def _told_active(fix: Fix, form: Form, run: Run) -> Needs:
    """Of a run without Megatron's settings only what is known to be active: nobody has them to look
    up.
    """
    return tuple(need for need in (*fix.active(run), *form.active(run)) if need.state == "unmet")


def _without_flags(fix: Fix) -> Fix:
    def change(run: Run) -> Change:
        return Change(launch=fix.knobs(run).environment, how=fix.change(run).how)

    return replace(fix, change=change, versions=say("fixes.any-framework"), gains=(), excludes=())
