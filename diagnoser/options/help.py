"""The help of a command: one screen of what is asked most, in groups; all of it under `--help-all`.

A screen has the summary, some examples, and of each option that is listed here the first sentence.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from diagnoser.options import ARGUMENTS, OptionRow, by_title, rows
from reports.rows import each, those
from traces.patterns import compiled

ABOUT: Final = "about_"
"""Before the names of what is said of the run: a command has `--gpu N` of its own."""

_FIRST: Final = frozenset({"about_gpu", "about_ep", "about_core_version"})
"""What is said of the run on the one screen; of all others their rows tell."""
_EXAMPLES: Final = 5
_BLOCK: Final = "\b\n"
_SENTENCE: Final = compiled(r"(?s)(\w\w|\))[.:;] .*|\.$")
_WIDE: Final = 30
_ALL: Final = "moe-diag.help-all"
"""In the context, where all is asked for."""


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[_ALL] = True
        shown: Any = ctx.command.get_help_option(ctx)
        shown.callback(ctx, shown, True)  # prints and ends


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=_show_all,
        is_eager=True,
        show_default=False,
        help="Show every option.",
    ),
]


class Group(TyperGroup):
    """Commands under one name, of which `--help-all` shows the help of each."""

    def get_help(self, ctx: Any) -> str:
        if _ALL not in ctx.meta:
            return super().get_help(ctx)
        return "\n\n".join(
            type(ctx)(command, parent=ctx, info_name=name).get_help()
            for name, command in self.commands.items()
        )


class GroupedCommand(TyperCommand):
    """A command whose help is one screen, in groups; one without `--help-all` shows all it has."""

    def _is_short(self, ctx: Any) -> bool:
        return _ALL not in ctx.meta and "help_all" in each(self.params, "name")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_shortened(text) if self._is_short(ctx) else text)

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Nothing: arguments stand before the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        short, params = self._is_short(ctx), self.get_params(ctx)
        for title in by_title():
            is_whole = not short or title == ARGUMENTS
            records = [
                _record(ctx, param, short)
                for param in params
                if _title(param) == title and (is_whole or _is_first(param.name))
            ]
            if records:
                if is_whole:
                    formatter.write_paragraph()
                formatter.write_heading(title)
                with formatter.indentation():
                    formatter.write_dl(records, col_max=_WIDE)
        if short:
            count = len(those(params, param_type_name="option"))
            formatter.write_paragraph()
            formatter.write_text(f"All {count} options: {ctx.command_path} --help-all")


def _record(ctx: Any, param: Any, short: bool) -> tuple[str, str]:
    """How a parameter is typed, and its help; in short the first sentence, and the choices of a
    format.
    """
    typed, help = param.get_help_record(ctx) or ("", "")
    help = help.removeprefix("About the run: ")
    if short and param.name == "form":
        flags, _, choices = typed.rpartition(" ")
        return f"{flags} FORMAT", choices
    if not short:
        return typed, help
    first = _SENTENCE.sub(lambda match: match[1] or "", help)
    return typed, first if " " in first else help.removesuffix(".")


def _title(param: Any) -> str:
    if param.param_type_name == "argument":
        return ARGUMENTS
    if param.name.startswith(ABOUT):
        return "About the run"
    if param.name in _options():
        return _options()[param.name].title
    return "Help"


def _is_first(name: Any) -> bool:
    return name in _FIRST or (name in _options() and _options()[name].is_first)


@cache
def _options() -> Mapping[str, OptionRow]:
    """Options by their names, whichever command they are of."""
    return {key.rpartition(".")[2]: row for key, row in rows().items() if row.title != ARGUMENTS}


def _shortened(text: str) -> str:
    """The summary and the first examples."""
    summary, _, rest = text.partition("\n\n")
    lines = rest.partition(_BLOCK)[2].partition("\n\n")[0].splitlines()[:_EXAMPLES]
    if lines:
        return "\n".join((summary, "", _BLOCK + "\n".join(lines)))
    return summary
