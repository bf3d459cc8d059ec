"""What a user says of a run that its trace cannot tell: the fields of `Given` as options and as arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Final, get_args

import typer

from traces.errors import UsageError

ABOUT: Final[Mapping[str, tuple[type, str, str]]] = {
    "gpu": (str, "NAME", "GPU model, such as H100 or GB200."),
    "nvlink_domain": (int, "N", "GPUs in one NVLink domain (8, 72)."),
    "ep": (int, "N", "Expert-parallel size."),
    "etp": (int, "N", "Expert-tensor-parallel size."),
    "tp": (int, "N", "Tensor-parallel size."),
    "cp": (int, "N", "Context-parallel size."),
    "pp": (int, "N", "Pipeline-parallel size."),
    "vpp": (int, "N", "Virtual pipeline stages."),
    "precision": (str, "NAME", "Precision of the matrix work, such as bf16 or mxfp8."),
    "stage": (str, "bring_up|tuned", "How far the run is tuned."),
    "routing": (str, "dropless|force_balance|drop_pad", "How tokens are routed."),
    "family": (str, "NAME", "dsv3, qwen3_235b, qwen3_30b, qwen3_next or vlm."),
    "memory_tight": (bool, "", "Memory has no room."),
    "flex_package": (bool, "", "DeepEP or HybridEP can be imported."),
    "cpu_bound_to_numa": (bool, "", "Ranks are bound to the CPUs near their GPU."),
    "core_version": (str, "V", "Megatron-Core version."),
    "bridge_version": (str, "V", "Megatron-Bridge version."),
    "torch_version": (str, "V", "PyTorch version."),
    "te_version": (str, "V", "Transformer Engine version."),
    "container": (str, "NAME", "Container the run is in."),
    "pp_layout": (str, "TEXT", "Pipeline layout."),
    "graph_impl": (str, "NAME", "cuda_graph_impl."),
    "graph_modules": (str, "A,B", "Modules captured into CUDA graphs."),
    "packed_sequences": (bool, "", "Sequences are packed."),
    "router_padding": (bool, "", "The router pads for low precision."),
    "te_op_fuser": (bool, "", "Transformer Engine's op fuser is on."),
    "guidance": (str, "seed|main-2026-08", "Which edition of NVIDIA's guides decides."),
}
"""Field of `heuristics.run.given.Given` -> type, placeholder, help. A test keeps them equal."""

_PREFIX: Final = "about_"
"""Before the names of these parameters: a command has `--gpu N` of its own."""
_RENAMED: Final = {"gpu": "gpu-model"}


def option_of(field: str) -> str:
    """The option that gives a field: `--core-version`."""
    return "--" + _RENAMED.get(field, field.replace("_", "-"))


def with_about(command: Callable[..., int]) -> Callable[..., int]:
    """Add an option per field to a command, which takes what was given as the mapping `about`."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> int:
        about = {field: kwargs.pop(_PREFIX + field) for field in ABOUT}
        return command(
            *args, about={key: value for key, value in about.items() if value is not None}, **kwargs
        )

    own = inspect.signature(command, eval_str=True)
    kept = [parameter for name, parameter in own.parameters.items() if name != "about"]
    whole = own.replace(parameters=[*kept, *map(_parameter, ABOUT)])
    wrapped.__signature__ = whole  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: parameter.annotation for name, parameter in whole.parameters.items()}
    del wrapped.__wrapped__  # or its own signature would be read instead
    return wrapped


def _parameter(field: str) -> inspect.Parameter:
    kind, placeholder, help_ = ABOUT[field]
    names = option_of(field) + (f"/--no-{field.replace('_', '-')}" if kind is bool else "")
    option = typer.Option(
        names, metavar=placeholder or None, help=f"About the run: {help_}", show_default=False
    )
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        _PREFIX + field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def given_from(about: Mapping[str, object]) -> Any:
    """A `Given`. Raises `UsageError` for a field or a value that cannot be."""
    from heuristics.config.hardware import gpu_family
    from heuristics.run.given import Given, Guidance, Routing, Stage

    values = dict(about)
    for field in values:
        if field not in ABOUT:
            raise UsageError(f"nothing is known of {field!r}. There are {', '.join(ABOUT)}.")
    for field, choices in (("stage", Stage), ("routing", Routing), ("guidance", Guidance)):
        if field in values and values[field] not in get_args(choices):
            raise UsageError(
                f"{option_of(field)} {values[field]!r} is not known. Give {' or '.join(get_args(choices))}."
            )
    for field in ("core_version", "bridge_version", "torch_version", "te_version"):
        if isinstance(version := values.get(field), str) and not re.search(r"\d+\.\d+", version):
            raise UsageError(f"{option_of(field)} {version!r} is no version. Give one such as 0.16.1.")
    if isinstance(name := values.get("gpu"), str):
        values["gpu"] = gpu_family(name) or name
    if isinstance(modules := values.get("graph_modules"), str):
        values["graph_modules"] = tuple(part for part in modules.replace(",", " ").split() if part)
    for field in ("nvlink_domain", "ep", "etp", "tp", "cp", "pp", "vpp"):
        if isinstance(size := values.get(field), int) and size < 1:
            raise UsageError(f"{option_of(field)} {size} is no size. Give 1 or more.")
    return Given(**values)  # type: ignore[arg-type]
