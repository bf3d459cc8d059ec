"""What the user may give of a run: a field of `Given` is a row that has its option, its help and
its knobs.

A setting that is one knob stands here once: options, files and the trace meet under the knob's id.
"""

from typing import Final, Literal

from traces.frozen import frozen
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

Guidance = Literal["seed", "main-2026-08"]
NEWEST: Final = "main-2026-08"
"""NVIDIA's published guides: `seed` of Megatron-Bridge up to 0.6, `main-2026-08` of its main since
then."""

Stage = Literal["bring_up", "tuned"]
Routing = Literal["dropless", "force_balance", "drop_pad"]


class Option(TableRow):
    """A row of `about.toml`, which says what its fields are."""

    help: str
    kind: type = str
    takes: str = ""
    knobs: Texts = ()
    is_knob: bool = False
    is_of_place: bool = False


@frozen
class Given:
    """What the user gives about a run; None is unknown, never no. Sizes are counts of ranks.

    `env`: as `NAME=VALUE`, which a YAML of Megatron-Bridge has no place for. `graph_impl`,
    `graph_modules`: as Megatron-Core takes them.
    """

    gpu: str | None = None
    nvlink_domain: int | None = None
    world_size: int | None = None
    gpus_per_node: int | None = None
    ep: int | None = None
    etp: int | None = None
    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    precision: str | None = None
    stage: Stage | None = None
    routing: Routing | None = None
    family: str | None = None
    memory_tight: bool | None = None
    flex_package: bool | None = None
    cpu_bound_to_numa: bool | None = None
    core_version: str | None = None
    bridge_version: str | None = None
    torch_version: str | None = None
    te_version: str | None = None
    container: str | None = None
    pp_layout: str | None = None
    graph_impl: str | None = None
    graph_modules: Texts | None = None
    packed_sequences: bool | None = None
    router_padding: bool | None = None
    te_op_fuser: bool | None = None
    env: Texts | None = None
    guidance: Guidance = NEWEST


_KINDS: Final = {"int": int, "bool": bool, "list": list}
OPTIONS: Final = read_table(
    "heuristics.config", "about.toml", dict[str, Option], {type: _KINDS.__getitem__}
)
GRAPH_KNOBS: Final = OPTIONS["graph_impl"].knobs

_RENAMED: Final = {"gpu": "gpu-model"}
"""A command has `--gpu N` of its own."""


def option_of(field: str) -> str:
    """The option that gives a field: `--core-version`."""
    return "--" + _RENAMED.get(field, field.replace("_", "-"))


_FIELDS: Final = {option_of(field): field for field in OPTIONS}


def not_given(options: str, given: Given) -> str:
    """Of options such as "--nvlink-domain or --gpu-model" those that were not given; empty where
    all were.
    """
    left = (
        option
        for option in options.split(" or ")
        if option not in _FIELDS or getattr(given, _FIELDS[option]) is None
    )
    return " or ".join(left)
