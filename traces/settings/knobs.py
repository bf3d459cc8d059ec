"""The table of knobs: under which name each framework and release takes each knob, and what it
takes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from traces.missing import of_known
from traces.patterns import compiled, numbers_in
from traces.settings.settings import Value
from traces.texts import Texts
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


class Knob(Struct, frozen=True, forbid_unknown_fields=True):
    """One row; what it does not say follows from its group.

    `flag`, `off`: of Megatron-LM, the latter sets it False; empty where there is none. `dest`: its
    name in the arguments that Megatron-LM prints; `dest_is_opposite`: of the opposite meaning.
    `bridge`, `harness`: path of a Megatron-Bridge override, flag of its scripts/performance; empty:
    none. `since` and `until` (None: still there) hold for the knob, `flag_since` for its flag.
    `choices`: the words it takes; empty: any. `free`: Megatron-LM's parser takes others too.
    `new_choices`: words that came after the knob, each with its release; `gone_choices`: with the
    first that takes them no more. `harness_choices`: what Bridge's scripts take; empty: the same.
    `defaults`: what megatron/training/arguments.py has, each from a release on. `is_core`: a field
    of TransformerConfig or a parent. `older`: names that it had, each with the first release that
    has the next one.
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
    choices: Texts = ()
    free: bool = False
    new_choices: dict[str, Release] = {}
    gone_choices: dict[str, Release] = {}
    harness_choices: Texts = ()
    default: Value | UnsetType = UNSET
    defaults: tuple[tuple[Release, Value], ...] = ()
    is_core: bool = False
    older: dict[str, Release] = {}
    source: str = ""

    def is_known_in(self, core: Release) -> bool:
        """Whether that release of Megatron-Core has it, under this name or an older one."""
        return self.since <= core and (self.until is None or core < self.until)

    def default_in(self, core: Release | None) -> tuple[Value] | None:
        """(Its default,) in Megatron-LM; None where it has none, or releases differ and none is
        given.
        """
        default = None
        if core is not None or len(self.defaults) == 1:
            for since, value in self.defaults:
                if core is None or since <= core:
                    default = (value,)
        return default

    def words_in(self, core: Release) -> Texts:
        """Of its choices those that a release takes."""
        words = []
        for word in self.choices:
            gone = self.gone_choices.get(word)
            if self.new_choices.get(word, FIRST) <= core and (gone is None or core < gone):
                words.append(word)
        return tuple(words)

    @property
    def renamed(self) -> Release:
        """The first release that has it under its newest name, as far as names go."""
        return max((FIRST, *self.older.values()))

    def name_in(self, core: Release | None) -> str:
        """Its field's name in a release; the newest where none is given."""
        for name, until in self.older.items():
            if core is not None and core < until:
                return name
        return self.id.rpartition(".")[2]


@cache
def release(version: str | None) -> Release | None:
    """(0, 16, 1) of "0.16.1", "core_v0.16.1" or "0.16.1+abc"; main is the newest; None where no
    number is.

    One before the first of our tables counts as that one: they know nothing of older releases.
    """
    if version in ("main", "dev"):
        return MAIN
    match = compiled(r"\d{1,4}(?:\.\d{1,4}){0,2}").search(version or "")
    if not match:
        return None
    return max(FIRST, Release((*numbers_in(match[0]), 0, 0)[:3]))


def is_before_tables(core_version: str | None) -> bool:
    """Whether a release of Megatron-Core is older than all that the tables were read from."""
    match = compiled(r"\d{1,4}\.\d{1,4}").search(core_version or "")
    return match is not None and numbers_in(match[0]) < FIRST[:2]


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
    by_id, plain = {}, {}
    for group in groups:
        for name, row in group.knobs.items():
            by_id[group.prefix + name] = _complete(group, name, row)
        for kind, names in group.plain.items():
            for name in names.split():
                plain[group.prefix + name] = _complete(group, name, Knob(kind, flag=""))
    return by_id | plain


def flag_named(name: str) -> str:
    """The flag of Megatron-LM for an argument of this name."""
    return "--" + name.replace("_", "-")


def _complete(group: _Group, name: str, row: Knob) -> Knob:
    last = name.rpartition(".")[2]
    flag, dest, bridge = row.flag, row.dest, row.bridge
    if flag == _OF_GROUP:
        flag = flag_named(last) if group.flags and not row.off else ""
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
        defaults=row.defaults if row.default is UNSET else ((FIRST, row.default),),
        is_core=group.core,
        source=row.source or group.source,
    )


def known_in(knob_id: str, core_version: str | None) -> bool | None:
    """Whether a release of Megatron-Core has the knob; None where knob or version is unknown."""
    return of_known(Knob.is_known_in, knobs().get(knob_id), release(core_version))


@cache
def by_flag() -> Mapping[str, Sequence[tuple[Knob, bool]]]:
    """Each flag of Megatron-LM: the knobs it sets, and whether it sets them False. Older names
    included.
    """
    by_name = dict[str, list[tuple[Knob, bool]]]()
    for knob in knobs().values():
        for flag in filter(None, (knob.flag, knob.off, *map(flag_named, knob.older))):
            by_name.setdefault(flag, []).append((knob, flag == knob.off))
    return by_name


@cache
def by_dest() -> Mapping[str, Sequence[Knob]]:
    """Each name of Megatron-LM's printed arguments: the knobs it tells. Older names included."""
    by_name = defaultdict[str, list[Knob]](list)
    for knob in knobs().values():
        for name in filter(None, (knob.dest, *knob.older)):
            by_name[name].append(knob)
    return by_name


@cache
def by_path() -> Mapping[str, Knob]:
    """Each path of a Megatron-Bridge configuration: its knob. Older names included."""
    knob_of = {}
    for knob in knobs().values():
        group, _, name = knob.bridge.rpartition(".")
        if name:
            knob_of[knob.bridge] = knob
        for older in knob.older:
            knob_of[f"{group}.{older}"] = knob
    return knob_of


@cache
def by_harness() -> Mapping[str, Knob]:
    """Each flag of Megatron-Bridge's scripts/performance: its knob."""
    return {knob.harness: knob for knob in knobs().values() if knob.harness}
