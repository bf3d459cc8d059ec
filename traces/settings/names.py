"""Names the frameworks know, the nearest of them to one they do not, and which names may be
shown.
"""

from collections.abc import Callable, Collection
from functools import cache
from itertools import chain
from typing import Final

from traces.limits import NEARLY_ALL, QUARTER, Limit
from traces.nearest import LONGEST_NAME, nearest
from traces.patterns import compiled
from traces.settings.draft import MOST_PROBLEMS, Draft
from traces.settings.knobs import by_flag, by_harness, by_path, flag_named
from traces.toml_tables import TableRow, read_table

NEAR: Final = Limit(
    0.7,
    "similarity of two names (difflib, 0 to 1)",
    "ours: one letter or one word of four wrong is near, another knob of the same family mostly is "
    "not",
)


class Names(frozenset[str]):
    """Names, in a table as one text with a space between them."""


class _Known(TableRow):
    """Flags of Megatron-LM and of Bridge's harness; fields by group of Bridge, those that are
    flags of Megatron-LM apart.

    `open_groups`: groups of Bridge whose fields depend on the class chosen; any name goes there.
    `launchers`: flags of launchers and of `#SBATCH`, each with what it counts.
    `bridges`: NVIDIA's NeMo containers, each with its Megatron-Bridge.
    """

    megatron_lm: Names
    harness: Names
    harness_short: dict[str, str]
    open_groups: Names
    words: Names
    launchers: dict[str, str]
    bridges: dict[str, str]
    shared: dict[str, Names]
    own: dict[str, Names]


@cache
def known_names() -> _Known:
    """The table of names that we know."""
    split = {Names: lambda text: Names(text.split())}
    return read_table("traces.settings", "known_names.toml", _Known, split)


@cache
def lm_flags() -> frozenset[str]:
    """Every flag of Megatron-LM, those of knobs included."""
    names = chain.from_iterable(known_names().shared.values())
    return known_names().megatron_lm | {*map(flag_named, names)} | by_flag().keys()


@cache
def harness_flags() -> frozenset[str]:
    """Every flag of Bridge's scripts/performance, those of knobs included."""
    return known_names().harness.union(by_harness())


def known_words() -> frozenset[str]:
    """Texts of knobs that take any word, as the frameworks' own recipes have them: nobody's name or
    path.
    """
    return known_names().words


def long_flag(flag: str) -> str:
    """A flag of Bridge's scripts/performance by its long name."""
    return known_names().harness_short.get(flag, flag)


@cache
def bridge_paths() -> frozenset[str]:
    """Every path of a Bridge configuration that we can name."""
    paths = set(by_path())
    for group, names in (*known_names().shared.items(), *known_names().own.items()):
        paths.update(f"{group}.{name}" for name in names)
    return frozenset(paths)


@cache
def bridge_groups() -> frozenset[str]:
    """Top-level names of a Bridge configuration."""
    return known_names().open_groups.union(path.partition(".")[0] for path in bridge_paths())


def nearest_in(draft: Draft, name: str, known: Collection[str], near: Limit = NEAR) -> str:
    """What is meant by a file's name, of its first ones alone: a file with more is of another
    kind.
    """
    draft.looked_up += 1
    if draft.looked_up <= MOST_PROBLEMS.value:
        return nearest(name, known, near.value)
    return ""


@cache
def _words() -> frozenset[str]:
    names = (
        lm_flags()
        | harness_flags()
        | bridge_paths()
        | known_names().open_groups
        | {"cfg", "config", "env", "env_vars", "launcher"}
    )
    return frozenset(compiled(r"[^A-Za-z0-9]+").split(" ".join(names)))


def shown(name: str, near: str = "") -> str:
    """A name of the file as it may leave it: words that we do not know, which may be anything, are
    dots.

    A word that is a slip of one in the name `near` to it, which is printed as well, tells no more
    than that.
    """
    if len(name) > LONGEST_NAME.value:
        return "..."
    alike = compiled(r"[A-Za-z0-9]+").findall(near)

    def may_leave(word: str) -> bool:
        return word in _words() or nearest(word, alike, NEAR.value) != ""

    return compiled(r"[A-Za-z0-9]+").sub(
        lambda word: word[0] if may_leave(word[0]) else "...", name
    )


def say_unknown(
    draft: Draft,
    line: int | None,
    name: str,
    known: Collection[str],
    what: str,
    only_slips: bool = False,
    is_parsed: bool = False,
    fits: Callable[[str], bool] = bool,
) -> None:
    """Note a name that is none of the known, with the one that is meant.

    `only_slips`: of others nothing is said, as they may be a program's own. `is_parsed`: a slip
    stops it. `fits`: whether its value is one of a name; any is unless said.
    """
    near = nearest_in(draft, name, known, NEARLY_ALL if only_slips else NEAR)
    alike = nearest(name.rpartition(".")[2], [near.rpartition(".")[2]], 1 - QUARTER.value)
    if not alike or not fits(near):  # only the group is alike, or its value is of another kind
        near = ""
    if near or not only_slips:
        stops = is_parsed and nearest(name, [near], NEARLY_ALL.value) != ""
        draft.problem(line, f"{shown(name, near)}: {what}", near, "stops" if stops else "unread")
