"""argv -> exit code. The only place that exits; with `diagnoser.output` the only one that prints.

Exit codes: `heuristics.result.exits`. Commands return theirs, errors have theirs here.
"""

import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, NoReturn

import typer

from diagnoser import __version__
from diagnoser.options.command import commands_of
from diagnoser.options.faults import not_ours, place_of_bug
from diagnoser.options.help import GroupedCommand, HelpAll
from diagnoser.output import say
from heuristics.result.exits import Exit
from traces.errors import InputError, MoeDiagError, NothingToDiagnose, UsageError, out_of_memory
from traces.notes import noting

COMMANDS: Final = {
    **dict.fromkeys(("analyze", "check-config", "compare"), "runs"),
    **dict.fromkeys(("merge", "report"), "results"),
    **dict.fromkeys(("capture", "doctor"), "recordings"),
    "open": "timeline",
    "plan": "layouts",
    "explain": "results",
    "demo": "runs",
    "mcp": "agents",
    "history": "",
}
"""In the order of the help. Each is a function of that name in this module of `diagnoser.commands`,
which returns the exit code, none for 0; `history` has commands of its own. """

_EXIT_CODES: Final = {
    UsageError: Exit.USAGE,
    InputError: Exit.INPUT,
    NothingToDiagnose: Exit.NOTHING,
}
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]
"""What the command line parser raises: click's ClickException, of which newer typers carry their
own copy."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moe-diag {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    help_all: HelpAll = False,
) -> None:
    """Say which wall holds a Mixture-of-Experts training run back, from its Nsight Systems trace.

    \b
    moe-diag analyze run.nsys-rep             the report, on stdout
    moe-diag analyze run.sqlite -f json       the same as a JSON document
    moe-diag analyze FOLDER                   ranks of one run: who makes whom wait
    moe-diag analyze run.sqlite --ticket DIR  what a perf ticket needs: page, figure, data
    moe-diag report run.json -o run.html      an earlier result in any format
    moe-diag open run.sqlite --at COM-2       a finding's moment, in Perfetto's timeline
    moe-diag merge FOLDER                     summaries of many ranks as one run
    moe-diag capture --for walls              how to record: nsys line, framework's flags
    moe-diag doctor run.nsys-rep              is this recording good enough
    moe-diag compare before.json after.sqlite is it really slower, why, what changed
    moe-diag check-config run.yaml            is this configuration legal, what to try
    moe-diag plan MODEL --gpus 256            layouts that fit, which to try first
    moe-diag explain COM-2                    what a fix, a wall or a measure means
    moe-diag demo                             diagnose a simulated run with a known wall
    """


@cache
def _app(*names: str) -> typer.Typer:
    """The command line with these commands; what the others need is not loaded."""
    app = commands_of("moe-diag")
    app.callback()(_root)
    for name in names:
        if name == "history":
            from diagnoser.history.commands import history_app

            app.add_typer(
                history_app, name=name, help="Results kept over time: add, list, baseline."
            )
            continue
        own = name.replace("-", "_")
        app.command(name, cls=GroupedCommand)(
            getattr(import_module(f"diagnoser.commands.{COMMANDS[name]}"), own)
        )
    return app


def main() -> NoReturn:
    try:
        sys.unraisablehook = _once_more
        _answer(signal.default_int_handler)
        code = run(sys.argv[1:])
        _answer(signal.SIG_IGN)  # all is done
    except KeyboardInterrupt:  # a second one, while the first was answered
        code = Exit.INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # what did not reach its reader was said
            stream.flush()
    os._exit(code)  # at once: to free every object of thousands of ranks takes 0.1 s


def _answer(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Let Ctrl-C, an end from outside and a terminal that goes away be one; ignored ones stay so
    (nohup).
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _once_more(dropped: Any) -> None:
    """Python drops what is raised in a callback, such as a weak reference's: then the end comes
    once more.
    """
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        sys.__unraisablehook__(dropped)


def run(arguments: list[str]) -> int:
    try:
        first = arguments[:1]
        app = _app(*(first if first and first[0] in COMMANDS else COMMANDS))
        with noting(say):
            result = app(arguments, standalone_mode=False, prog_name="moe-diag")
    except MoeDiagError as error:
        return _said(
            str(error), next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))
        )
    except _WrongUsage as error:
        message = str(getattr(error, "format_message", error.__str__)())
        if type(error).__name__ == "NoArgsIsHelpError":  # of the parser's own copy: the whole help
            with suppress(OSError):
                print(message, file=sys.stderr, flush=True)
            return int(Exit.USAGE)
        return _said(f"{message.rstrip('.')}. {_what_to_type(arguments)}", Exit.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        result = Exit.INTERRUPTED
    except MemoryError:
        result = MemoryError  # answered below, where what the error held is gone
    except Exception as error:
        if "MOE_DIAG_TRACEBACK" in os.environ:
            traceback.print_exc()
        if cause := not_ours(error):
            return _said(cause, Exit.INPUT)
        return _said(
            f"a bug of ours ({place_of_bug(error)}). Please report it with what the same command "
            "prints under MOE_DIAG_TRACEBACK=1.",
            Exit.BUG,
        )
    if result is MemoryError:
        return _said(str(out_of_memory("the command")), Exit.INPUT)
    if result == Exit.INTERRUPTED:  # or the parser's own answer to Ctrl-C
        return _said("interrupted; nothing was left behind.", Exit.INTERRUPTED)
    if isinstance(result, int):
        return int(result)
    return int(Exit.DONE)


def _said(message: str, code: int) -> int:
    say(message)
    return int(code)


def _what_to_type(arguments: list[str]) -> str:
    """The help of the command that was meant; the whole line where only its name was forgotten."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return f"Type moe-diag {first} --help."
    is_there = os.path.exists(first)  # noqa: PTH110 - False for a name that no file can have
    if is_there or first.endswith((".nsys-rep", ".qdrep", ".sqlite", ".json", ".json.gz")):
        from reports.result.read import is_result

        meant = "report" if is_result(Path(first)) else "analyze"
        return f"Type {shlex.join(['moe-diag', meant, *arguments])}"
    return "Type moe-diag --help."
