"""A function becomes a command: requests become options."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer

from diagnoser import options
from diagnoser.options import About, Typed
from diagnoser.options.given import SYNONYMS
from diagnoser.options.help import ABOUT, Group, HelpAll
from heuristics.config.about import OPTIONS, option_of

MOST: Final = 6
"""Parameters of a command whose help is one screen as it is."""

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


def command(*, lacks: Collection[str] = ()) -> Callable[[Command], Command]:
    """Let a function be read by the parser of the command line.

    A parameter of type `partial[R]` takes what was typed of the request R, which has no options of the names
    in `lacks`. Options stand in the help as in `diagnoser.options`.
    """

    def made(function: Command) -> Command:
        own = signature(function, eval_str=True).parameters
        listed, requests = [], dict[str, tuple[type, list[Parameter]]]()
        for name, one in own.items():
            if get_origin(one.annotation) is partial:
                (request,) = get_args(one.annotation)
                requests[name] = request, list(_fields(request, lacks))
                listed += requests[name][1]
            else:
                listed.append(one)
        known = list(vars(options).values())
        listed.sort(key=lambda one: known.index(one.annotation) if one.annotation in known else -1)

        def called(**typed: Any) -> int | None:
            typed.pop("help_all", None)
            said = {key: typed.pop(key) for key in [*typed] if key.startswith(ABOUT)}
            about = {key.removeprefix(ABOUT): one for key, one in said.items() if one is not None}
            for name, (request, several) in requests.items():
                typed[name] = partial(
                    request,
                    **{
                        one.name: about if one.annotation == About else typed.pop(one.name) for one in several
                    },
                )
            return function(**typed)

        own_names = {one.name for one in listed}
        shown = [each for one in listed for each in _as_typed(one, own_names)]
        if len(shown) > MOST:
            shown.append(_parameter("help_all", False, HelpAll))
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in shown}
        return called

    return made


def _fields(request: type, lacks: Collection[str]) -> Iterator[Parameter]:
    hints = get_type_hints(request, include_extras=True)
    for one in fields(request):
        if get_origin(hints[one.name]) is Annotated and one.name not in lacks:
            yield _parameter(one.name, one.default, hints[one.name])


def _parameter(name: str, default: object, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _as_typed(one: Parameter, own: Collection[str]) -> Iterator[Parameter]:
    """A parameter as the parser takes it; what is said of the run as an option a field.

    `own`: parameters of the command, whose names are no other word for a field.
    """
    match get_args(one.annotation):
        case _, info, Typed(kind, default):
            yield one.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)
        case _ if one.annotation == About:
            for field, row in OPTIONS.items():
                flag = option_of(field) + (f"/--no-{field.replace('_', '-')}" if row.kind is bool else "")
                others = (
                    f"--{word}" for word, meant in SYNONYMS.items() if meant == field and word not in own
                )
                info = typer.Option(
                    flag,
                    *others,
                    metavar=row.takes or None,
                    help=f"About the run: {row.help}",
                    show_default=False,
                )
                kind = list[str] if row.kind is list else row.kind
                yield _parameter(ABOUT + field, None, Annotated[kind | None, info])
        case _:
            yield one.replace(kind=Parameter.KEYWORD_ONLY)
