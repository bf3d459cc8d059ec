"""How many ranks a command starts, and whether it binds them to the CPUs near their GPUs."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from traces.settings.shell import Word

BINDERS: Final = frozenset({"numactl", "bindpcie", "bindpcie.sh"})
"""Launchers that bind a rank (Megatron-Bridge, docs/performance-guide.md; mlperf-common)."""

_PER_NODE: Final = ("--nproc-per-node", "--nproc_per_node", "--nproc")
_NODES: Final = ("--nnodes", "-N", "--nodes")
_TASKS: Final = ("-n", "--ntasks", "-np", "--np")
_TASKS_PER_NODE: Final = ("--ntasks-per-node",)
_GPUS_PER_NODE: Final = ("--gpus-per-node",)


def world_size(
    launch: Iterable[Word], directives: Iterable[Word], variables: Mapping[str, Word]
) -> int | None:
    """Ranks in all, where plain numbers of the launcher, of `#SBATCH` or of WORLD_SIZE tell it."""
    words, asked = tuple(launch), tuple(directives)
    per_node = _number(words, _PER_NODE)
    nodes = _number(words, _NODES) or _number(asked, _NODES)
    if _is_torchrun(words):
        if per_node is None:
            return _plain(variables.get("WORLD_SIZE"))
        has_nodes = any(word.text.partition("=")[0] in _NODES for word in (*words, *asked))
        return per_node * nodes if nodes else None if has_nodes else per_node
    if (told := _plain(variables.get("WORLD_SIZE"))) is not None:
        return told
    tasks = _number(words, _TASKS) or _number(asked, _TASKS)
    if tasks is not None:
        return tasks
    each = _number(words, _TASKS_PER_NODE) or _number(asked, _TASKS_PER_NODE)
    return nodes * each if nodes and each else None


def gpus_per_node(launch: Iterable[Word], directives: Iterable[Word]) -> int | None:
    """Ranks that a node runs, one a GPU, where plain numbers of the launcher or of `#SBATCH` tell it."""
    words, asked = tuple(launch), tuple(directives)
    named = [_PER_NODE, _GPUS_PER_NODE]
    if not _is_torchrun(words):  # one task a node then starts all ranks of it
        named.append(_TASKS_PER_NODE)
    found = (_number(each, names) for names in named for each in (words, asked))
    return next((count for count in found if count is not None), None)


def _is_torchrun(words: tuple[Word, ...]) -> bool:
    return any(
        word.text.rpartition("/")[2] == "torchrun" or word.text.startswith("torch.distributed.")
        for word in words
    )


def is_bound(launch: Iterable[Word]) -> bool:
    """Whether a launcher binds ranks to CPUs."""
    return any(word.text.rpartition("/")[2] in BINDERS for word in launch)


def _number(words: tuple[Word, ...], flags: tuple[str, ...]) -> int | None:
    """The last plain number after one of the flags: `--nodes=4`, `--nodes 4` or `-N4`."""
    found: int | None = None
    for word, after in zip(words, (*words[1:], Word("", 0)), strict=False):
        flag, equals, text = word.text.partition("=")
        if flag in flags:
            value = text if equals else after.text
        elif short := re.fullmatch(r"(-[Nn])(\d+)", word.text):
            flag, value = short[1], short[2]
        else:
            continue
        if flag in flags:
            is_number = word.sure and re.fullmatch(r"[1-9]\d{0,6}", value)
            found = int(value) if is_number else None
    return found


def _plain(word: Word | None) -> int | None:
    is_number = word is not None and word.sure and re.fullmatch(r"[1-9]\d{0,6}", word.text.strip())
    return int(word.text) if word is not None and is_number else None
