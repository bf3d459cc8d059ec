"""What NVIDIA's guides choose by: each rule, and the whole table of a choice in both editions."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from heuristics.guides import dispatcher
from heuristics.guides.cuda_graphs import TABLE
from heuristics.guides.facts import LARGE_EP, PP_DEEP, SMALL_EP
from heuristics.guides.modules import MODULES, Module
from heuristics.guides.table import Row, facts_of, table
from heuristics.run.given import Guidance
from reports.content.blocks import Block, Code, Items, Sentence, Words, words
from reports.content.explain.topic import Topic, listed, sentence
from reports.content.wording import ended

_TABLES: Final = {
    "dispatcher": "dispatchers",
    "precision": "precision",
    "recompute": "recompute",
    TABLE: "CUDA graphs",
}
"""Table -> what its guide is on."""
_OF_FIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("COM-2", "MEM-5"), "dispatcher"),
    **dict.fromkeys(("CMP-3", "MEM-4"), "precision"),
    **dict.fromkeys(("MEM-2", "MEM-9"), "recompute"),
    **dict.fromkeys(("HST-3", "HST-7"), TABLE),
}
"""Fix -> the table that decides what it sets."""
_FACTS: Final[Mapping[str, str]] = {
    "package": "package of DeepEP or HybridEP",
    "stage": "stage",
    "stage_now": "stage",
    "hardware": "GPU",
    "architecture": "GPU",
    "family": "model",
    "ep_size": "EP",
    "crosses": "EP leaves the NVLink domain",
    "runs_low_precision": "FP8 or FP4",
    "memory_tight": "memory tight",
    "fp8_runs": "runs in FP8 already",
    "pressure": "memory pressure",
    "more_than_there_is": "the run needs more memory than there is",
    "layers_recomputed": "whole layers recomputed",
    "exhausted": "all modules recomputed",
    "moe_recomputed": "whole MoE layer recomputed",
    "selective": "modules recomputed",
    "no_memory_error": "the run fits",
    "graphs_run": "CUDA graphs run already",
    "host_visible": "launch overhead visible",
    "experts_run": "experts",
    "routing": "routing",
    "sync_free": "no sync of expert sizes",
    "packed": "packed sequences",
    "pp_deep": f"PP of {PP_DEEP.value:.0f} or more",
}
"""Facts of the tables, as people read them."""
_VALUES: Final[Mapping[object, str]] = {
    True: "yes",
    False: "no",
    "hopper": "H100, H200",
    "blackwell_nvl8": "B200, B300",
    "nvl72": "GB200, GB300 (NVL72)",
    "blackwell": "Blackwell",
    "ampere": "A100",
    "bring_up": "bring-up",
    "small": f"up to {SMALL_EP.value:.0f}",
    "medium": f"{SMALL_EP.value + 1:.0f} to {LARGE_EP.value - 1:.0f}",
    "large": f"{LARGE_EP.value:.0f} or more",
    "dsv3": "DeepSeek-V3",
    "qwen3_235b": "Qwen3 235B",
    "qwen3_30b": "Qwen3 30B",
    "qwen3_next": "Qwen3-Next",
    "vlm": "vision-language",
}


def guide_topics() -> Iterator[Topic]:
    """Every table of the guides, then every rule in them, of both editions."""
    for name, about in _TABLES.items():
        yield Topic(name, f"table of the guide on {about}", partial(_table, name))
        for edition, rows in table(name).items():
            for row in rows:
                yield Topic(row.id, f"rule of the guide on {about}, {edition}", partial(_row, row))
    yield Topic(dispatcher.NOT_FIRST, "rule of the guide on dispatchers", _not_first)


def table_of(fix: str) -> Iterator[Block]:
    """The table that decides what a fix sets; nothing where there is none."""
    if fix in _OF_FIXES:
        yield from _table(_OF_FIXES[fix])


def _table(name: str) -> Iterator[Block]:
    """The rows in their order, of both editions; the first of an edition that holds decides."""
    yield from sentence(
        "The first row that holds decides; what is unknown is passed over and asked for. A row of one "
        "edition only names it.",
        "Guide",
    )
    yield Items(tuple(_lines(name)))
    if name == "recompute":
        needs = (f"{one.label}: needs {one.needs}{_avoided(one)}" for one in MODULES.values())
        yield from listed("Modules", needs)


def _lines(name: str) -> Iterator[Words]:
    """Each row once: its rule and edition, when it holds, what it chooses and why."""
    editions = _rows(name)
    for row in dict.fromkeys(row for rows in editions.values() for row in rows):
        of = [edition for edition, rows in editions.items() if row in rows]
        edition = f" ({of[0]})" if len(of) < len(editions) else ""
        number, when, answer, why = row
        yield words(Code(number), f"{edition}: {answer}, {when}. Why: {ended(why)}")


def _rows(name: str) -> Mapping[Guidance, tuple[tuple[str, str, str, str], ...]]:
    return {
        edition: tuple((row.id, _when(row), _answer(row), row.reason) for row in rows)
        for edition, rows in table(name).items()
    }


def _avoided(module: Module) -> str:
    return f"; not recommended: {module.avoid}" if module.avoid else ""


def _when(row: Row) -> str:
    """The conditions of a row in words."""
    if row.when is None:
        return "otherwise"
    known = (
        f"{_FACTS[name]}: {' or '.join(_VALUES.get(value, str(value)) for value in values)}"
        for name, values in facts_of(row.when)
    )
    return f"where {'; '.join(known)}"


def _answer(row: Row) -> str:
    if not row.winner:
        return f"measure {' against '.join(row.answer)}"
    if row.how:
        return f"{row.how} {' '.join(row.answer)}".strip()
    first, *others = row.answer
    return f"{first}, then {', '.join(others)}" if others else first


def _row(row: Row) -> Iterator[Block]:
    yield from sentence(ended(row.reason))
    yield from sentence(ended(f"{_answer(row)}, {_when(row)}"), "Chooses")
    yield from sentence(" ".join(row.then), "Then, one at a time")
    yield from sentence(" ".join(row.never), "Never")
    yield from listed("With it", row.settings)
    yield from sentence(row.source, "Source")


def _not_first() -> Iterator[Sentence]:
    yield from sentence(
        "Expert all-to-all costs too little of the step for another dispatcher to be the first change, so "
        "the dispatcher that runs is kept."
    )
    yield from sentence(table("dispatcher")["seed"][0].source, "Source")
