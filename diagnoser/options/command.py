"""A function becomes a command: requests become options."""

from collections.abc import Callable, Collection, Iterator
from enum import Enum
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Final, get_args, get_origin

import typer

from diagnoser.options import ARGUMENTS, COMPLETED, OptionRow, rows, typed_as
from diagnoser.options.given import SYNONYMS
from diagnoser.options.help import ABOUT, Group, HelpAll
from heuristics.config.about import OPTIONS, option_of
from reports.formats import ResultKind
from reports.rows import each

MOST: Final = 6
"""Parameters of a command whose help is one screen as it is."""
_OF_THE_RUN: Final = "about"
"""The field of a request that has an option for each thing that may be said of the run."""

Command = Callable[..., int | None]


def commands_of(name: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=Group,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def command(
    *, of: ResultKind = ResultKind.ANALYSIS, lacks: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Let a function be read by the parser of the command line. `of`: what its formats are of.

    A parameter of type `partial[R]` takes what was typed of the request R, which has no options of
    the names in `lacks`. Options stand in the help as in `options.toml`.
    """

    def made(function: Command) -> Command:
        parameters, requests = [], {}
        for name, parameter in signature(function, eval_str=True).parameters.items():
            if get_origin(parameter.annotation) is partial:
                (request,) = get_args(parameter.annotation)
                taken = [option for option in _options_of(request) if option.name not in lacks]
                requests[name] = request, each(taken, "name")
                parameters += taken
            else:
                parameters.append(parameter)
        keys = {}
        for parameter in parameters:
            own = f"{function.__name__}.{parameter.name}"
            keys[parameter.name] = own if own in rows() else parameter.name
        if requests:
            places = [*rows(), _OF_THE_RUN]
            parameters.sort(key=lambda option: places.index(keys[option.name]))

        def called(**typed: Any) -> int | None:
            typed.pop("help_all", None)
            about = {}
            for name in [*typed]:
                if name.startswith(ABOUT) and (value := typed.pop(name)) is not None:
                    about[name.removeprefix(ABOUT)] = value
            typed[_OF_THE_RUN] = about
            for name, (request, taken) in requests.items():
                typed[name] = partial(
                    request, **dict(zip(taken, map(typed.pop, taken), strict=True))
                )
            typed.pop(_OF_THE_RUN, None)
            return function(**typed)

        shown = list[Parameter]()
        for parameter in parameters:
            shown += (
                _of_the_run(keys)
                if parameter.name == _OF_THE_RUN
                else [_typed(parameter, rows()[keys[parameter.name]], of)]
            )
        if len(shown) > MOST:
            shown.append(_parameter("help_all", False, HelpAll))
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        called.__annotations__ = {option.name: option.annotation for option in shown}
        return called

    return made


def _options_of(request: type) -> Iterator[Parameter]:
    for name, parameter in signature(request, eval_str=True).parameters.items():
        if name == _OF_THE_RUN or (name in rows() and rows()[name].title != ARGUMENTS):
            yield parameter


def _parameter(name: str, default: object, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(parameter: Parameter, row: OptionRow, of: ResultKind) -> Parameter:
    kind, default = parameter.annotation, parameter.default
    if row.kind:
        kind, default = typed_as(row, of)
    shared: dict[str, Any] = {"help": row.help, "autocompletion": COMPLETED.get(row.words)}
    if row.title == ARGUMENTS:
        info = typer.Argument(metavar=row.takes, readable=False, show_default=False, **shared)
    else:
        takes = row.takes or "|".join(_choices(kind)) or None
        flags = row.flags or (f"--{parameter.name.replace('_', '-')}",)
        info = typer.Option(
            *flags, metavar=takes, show_default=row.shows_default, min=row.least, **shared
        )
    return _parameter(parameter.name, default, Annotated[kind, info])


def _choices(kind: Any) -> list[str]:
    if inside := get_args(kind):
        return next(filter(None, map(_choices, inside)), [])
    if issubclass(kind, Enum):
        return [*kind]
    return []


def _of_the_run(own: Collection[str]) -> Iterator[Parameter]:
    """What is said of the run as an option a field.

    `own`: parameters of the command, whose names are no other word for a field.
    """
    for field, row in OPTIONS.items():
        flag = option_of(field) + (f"/--no-{field.replace('_', '-')}" if row.kind is bool else "")
        others = [
            f"--{word}" for word, meant in SYNONYMS.items() if meant == field and word not in own
        ]
        help, takes = f"About the run: {row.help}", row.takes or None
        info = typer.Option(flag, *others, metavar=takes, help=help, show_default=False)
        kind = list[str] if row.kind is list else row.kind
        yield _parameter(ABOUT + field, None, Annotated[kind | None, info])
