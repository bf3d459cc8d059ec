"""What a user says of a run that its trace cannot tell: the fields of `Given` as options and as arguments."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Final, get_args

import typer

from heuristics.config.options import OPTIONS, option_of
from traces.errors import UsageError

_PREFIX: Final = "about_"
"""Before the names of these parameters: a command has `--gpu N` of its own."""


def with_about(command: Callable[..., int]) -> Callable[..., int]:
    """Add an option per field to a command, which takes what was given as the mapping `about`."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> int:
        about = {field: kwargs.pop(_PREFIX + field) for field in OPTIONS}
        return command(
            *args, about={key: value for key, value in about.items() if value is not None}, **kwargs
        )

    own = inspect.signature(command, eval_str=True)
    kept = [parameter for name, parameter in own.parameters.items() if name != "about"]
    whole = own.replace(parameters=[*kept, *map(_parameter, OPTIONS)])
    wrapped.__signature__ = whole  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: parameter.annotation for name, parameter in whole.parameters.items()}
    del wrapped.__wrapped__  # or its own signature would be read instead
    return wrapped


def _parameter(field: str) -> inspect.Parameter:
    one = OPTIONS[field]
    kind, placeholder, help_ = one.kind, one.takes, one.help
    names = option_of(field) + (f"/--no-{field.replace('_', '-')}" if kind is bool else "")
    option = typer.Option(
        names, metavar=placeholder or None, help=f"About the run: {help_}", show_default=False
    )
    taken = list[str] if kind is list else kind
    annotation = Annotated[taken | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        _PREFIX + field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _variables(given: object) -> tuple[str, ...]:
    """Variables as `NAME=VALUE`. Raises `UsageError` for what is none, or is read by nothing here."""
    from traces.settings.knobs import knobs
    from traces.settings.names import nearest

    listed = [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given
    known = [knob.removeprefix("env.") for knob in knobs() if knob.startswith("env.")]
    for variable in listed if isinstance(listed, list | tuple) else (listed,):
        name, equals, _ = str(variable).partition("=")
        if not equals:
            raise UsageError(f"--env {name!r} has no value. Give NAME=VALUE.")
        if name not in known:
            near = nearest(name, known)
            cure = f"Give {near}." if near else f"There are {', '.join(known)}."
            raise UsageError(f"--env {name!r}: no variable that any rule here reads. {cure}")
    return tuple(map(str, listed)) if isinstance(listed, list | tuple) else (str(listed),)


def _gpu(name: str) -> str:
    """A GPU of our table. Raises `UsageError` for any other, with the nearest there is."""
    from traces.names.gpus import product_named, products
    from traces.settings.names import nearest

    if product := product_named(name):
        return product.name
    near = nearest(name.upper(), products())
    cure = f"Did you mean {near}? There are" if near else "There are"
    raise UsageError(f"{option_of('gpu')} {name!r} is no GPU that we know. {cure} {', '.join(products())}.")


def given_from(about: Mapping[str, object]) -> Any:
    """A `Given`. Raises `UsageError` for a field or a value that cannot be."""
    from heuristics.run.given import Given, Guidance, Routing, Stage

    values = dict(about)
    for field in values:
        if field not in OPTIONS:
            raise UsageError(f"nothing is known of {field!r}. There are {', '.join(OPTIONS)}.")
    for field, choices in (("stage", Stage), ("routing", Routing), ("guidance", Guidance)):
        if field in values and values[field] not in get_args(choices):
            raise UsageError(
                f"{option_of(field)} {values[field]!r} is not known. Give {' or '.join(get_args(choices))}."
            )
    for field in ("core_version", "bridge_version", "torch_version", "te_version"):
        if isinstance(version := values.get(field), str) and not re.search(r"\d+\.\d+", version):
            raise UsageError(f"{option_of(field)} {version!r} is no version. Give one such as 0.16.1.")
    if isinstance(name := values.get("gpu"), str):
        values["gpu"] = _gpu(name)
    if isinstance(modules := values.get("graph_modules"), str):
        values["graph_modules"] = tuple(part for part in modules.replace(",", " ").split() if part)
    if (variables := values.get("env")) is not None:
        values["env"] = _variables(variables)
    for field in ("nvlink_domain", "world_size", "gpus_per_node", "ep", "etp", "tp", "cp", "pp", "vpp"):
        if isinstance(size := values.get(field), int) and size < 1:
            raise UsageError(f"{option_of(field)} {size} is no size. Give 1 or more.")
    return Given(**values)  # type: ignore[arg-type]
