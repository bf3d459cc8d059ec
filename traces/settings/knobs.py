"""The table of knobs: under which name each framework and release takes each knob, and what it
takes.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from traces.missing import of_known
from traces.patterns import compiled
from traces.settings.settings import Value
from traces.toml_tables import read_table

Kind = Literal["bool", "int", "float", "str", "list", "int|list", "float|list", "str|list", "given"]
"""What a knob takes; `int|list` takes a single number or a list with one entry a layer. `given`:
anything; of it is kept only that it is there, as it may be a path or a name."""


class Release(tuple[int, int, int]):
    """A release of Megatron-Core: major, minor and micro number."""


MAIN: Final = Release((0, 20, 0))
"""What main of August 2026 calls itself (core/package_info.py at d98e8a64): later than every
release."""
FIRST: Final = Release((0, 12, 0))
"""Oldest release the table knows; what was there then may have been there before."""

TP: Final = "tensor_model_parallel_size"
CP: Final = "context_parallel_size"
PP: Final = "pipeline_model_parallel_size"
EP: Final = "expert_model_parallel_size"
ETP: Final = "expert_tensor_parallel_size"
VIRTUAL_STAGES: Final = "virtual_pipeline_model_parallel_size"
STAGE_LAYOUT: Final = "pipeline_model_parallel_layout"
GLOBAL_BATCH: Final = "train.global_batch_size"
MICRO_BATCH: Final = "train.micro_batch_size"
"""Ids of knobs that several files ask for: sizes of a run, its stages and its batch."""


_OF_GROUP: Final = "as the group has it"


class Older(Struct, frozen=True, forbid_unknown_fields=True):
    """A name that a knob had before `until`, the first release with the new one."""

    name: str
    until: Release


class Knob(Struct, frozen=True, forbid_unknown_fields=True):
    """One row; what it does not say follows from its group.

    `flag`, `off`: of Megatron-LM, the latter sets it False; empty where there is none. `dest`: its
    name in the arguments that Megatron-LM prints; `dest_is_opposite`: of the opposite meaning.
    `bridge`, `harness`: path of a Megatron-Bridge override, flag of its scripts/performance; empty:
    none. `since` and `until` (None: still there) hold for the knob, `flag_since` and `flag_until`
    for its flag. `choices`: the words it takes; empty: any. `free`: Megatron-LM's parser takes
    others too. `new_choices`: words that came after the knob, each with its release;
    `gone_choices`: with the first that takes them no more. `harness_choices`: what Bridge's scripts
    take; empty: the same. `defaults`: what megatron/training/arguments.py has, each from a release
    on. `is_core`: a field of TransformerConfig or a parent.
    """

    kind: Kind
    id: str = ""
    flag: str = _OF_GROUP
    off: str = ""
    dest: str = _OF_GROUP
    dest_is_opposite: bool = False
    bridge: str = _OF_GROUP
    harness: str = ""
    since: Release = FIRST
    until: Release | None = None
    flag_since: Release = FIRST
    flag_until: Release | None = None
    choices: tuple[str, ...] = ()
    free: bool = False
    new_choices: dict[str, Release] = {}
    gone_choices: dict[str, Release] = {}
    harness_choices: tuple[str, ...] = ()
    default: Value | UnsetType = UNSET
    defaults: tuple[tuple[Release, Value], ...] = ()
    is_core: bool = False
    older: tuple[Older, ...] = ()
    source: str = ""

    def is_known_in(self, core: Release) -> bool:
        """Whether that release of Megatron-Core has it, under this name or an older one."""
        return self.since <= core and (self.until is None or core < self.until)

    def default_in(self, core: Release | None) -> tuple[Value] | None:
        """(Its default,) in Megatron-LM; None where it has none, or releases differ and none is
        given.
        """
        if core is None and len(self.defaults) > 1:
            return None
        found = [value for since, value in self.defaults if core is None or since <= core]
        if found:
            return (found[-1],)
        return None

    def name_in(self, core: Release | None) -> str:
        """Its field's name in a release; the newest where none is given."""
        name = self.id.rpartition(".")[2]
        return next((old.name for old in self.older if core is not None and core < old.until), name)


@cache
def release(version: str | None) -> Release | None:
    """(0, 16, 1) of "0.16.1", "core_v0.16.1" or "0.16.1+abc"; main is the newest; None where no
    number is.

    One before the first of our tables counts as that one: they know nothing of older releases.
    """
    if version in ("main", "dev"):
        return MAIN
    found = compiled(r"\d{1,4}(?:\.\d{1,4}){0,2}").search(version or "")
    if found is None:
        return None
    return max(FIRST, Release((*(int(part) for part in found[0].split(".")), 0, 0)[:3]))


def is_before_tables(core_version: str | None) -> bool:
    """Whether a release of Megatron-Core is older than all that the tables were read from."""
    found = compiled(r"\d{1,4}\.\d{1,4}").search(core_version or "")
    return found is not None and tuple(map(int, found[0].split("."))) < FIRST[:2]


class _Group(Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    prefix: str = ""
    bridge: str | None = None
    core: bool = False
    flags: bool = False
    plain: dict[Kind, str] = {}
    knobs: dict[str, Knob] = {}


@cache
def knobs() -> Mapping[str, Knob]:
    """Every knob by its id."""
    readers = {Release: release}
    groups = read_table("traces.settings", "knobs.toml", dict[str, tuple[_Group, ...]], readers)[
        "group"
    ]
    found, plain = list[Knob](), list[Knob]()
    for group in groups:
        found += [_complete(group, name, row) for name, row in group.knobs.items()]
        for kind, names in group.plain.items():
            plain += [_complete(group, name, Knob(kind, flag="")) for name in names.split()]
    return MappingProxyType({knob.id: knob for knob in (*found, *plain)})


def _complete(group: _Group, name: str, row: Knob) -> Knob:
    last = name.rpartition(".")[2]
    flag, dest, bridge = row.flag, row.dest, row.bridge
    if flag == _OF_GROUP:
        flag = f"--{last.replace('_', '-')}" if group.flags and not row.off else ""
    if dest == _OF_GROUP:
        dest = flag[2:].replace("-", "_") or (last if row.off else "")
    if bridge == _OF_GROUP:
        bridge = (group.prefix if group.bridge is None else group.bridge) + name
    return replace(
        row,
        id=group.prefix + name,
        flag=flag,
        dest=dest.lstrip("!"),
        dest_is_opposite=dest.startswith("!"),
        bridge=bridge,
        flag_since=max(row.since, row.flag_since),
        flag_until=row.flag_until or row.until,
        defaults=row.defaults if row.default is UNSET else ((FIRST, row.default),),
        is_core=group.core,
        source=row.source or group.source,
    )


def known_in(knob_id: str, core_version: str | None) -> bool | None:
    """Whether a release of Megatron-Core has the knob; None where knob or version is unknown."""
    return of_known(Knob.is_known_in, knobs().get(knob_id), release(core_version))


@cache
def by_flag() -> Mapping[str, tuple[tuple[Knob, bool], ...]]:
    """Each flag of Megatron-LM: the knobs it sets, and whether it sets them False. Older names
    included.
    """
    found: dict[str, list[tuple[Knob, bool]]] = {}
    for knob in knobs().values():
        flags = [(knob.flag, False), (knob.off, True)]
        flags += [("--" + old.name.replace("_", "-"), False) for old in knob.older]
        for flag, is_off in flags:
            if flag:
                found.setdefault(flag, []).append((knob, is_off))
    return MappingProxyType({flag: tuple(rows) for flag, rows in found.items()})


@cache
def by_dest() -> Mapping[str, tuple[Knob, ...]]:
    """Each name of Megatron-LM's printed arguments: the knobs it tells. Older names included."""
    found: dict[str, list[Knob]] = {}
    for knob in knobs().values():
        for name in (knob.dest, *(old.name for old in knob.older)):
            if name:
                found.setdefault(name, []).append(knob)
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


@cache
def by_path() -> Mapping[str, Knob]:
    """Each path of a Megatron-Bridge configuration: its knob. Older names included."""
    found = {knob.bridge: knob for knob in knobs().values() if knob.bridge}
    for knob in knobs().values():
        group = knob.bridge.rpartition(".")[0]
        found |= {f"{group}.{old.name}": knob for old in knob.older}
    return MappingProxyType(found)


@cache
def by_harness() -> Mapping[str, Knob]:
    """Each flag of Megatron-Bridge's scripts/performance: its knob."""
    return MappingProxyType({knob.harness: knob for knob in knobs().values() if knob.harness})
